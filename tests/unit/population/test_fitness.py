"""Fitness of finished episodes (invariants 27, 30)."""

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.population.fitness import FitnessTracker

pytestmark = pytest.mark.unit


def steps(tracker, rewards, dones, extras=None):
    for reward, done in zip(rewards, dones, strict=True):
        tracker.step(torch.tensor(reward), torch.tensor(done), extras or {})


def test_deterministic_returns_come_out_exactly():
    tracker = FitnessTracker(torch.tensor([0, 1, 0, 1]), 2)
    rewards, ends = [[1.0, 2.0, 1.0, 2.0]] * 3, [[0] * 4, [0] * 4, [1] * 4]
    steps(tracker, rewards, ends)
    assert tracker.compute().values.isnan().all(), "episodes that were already running do not count"
    steps(tracker, rewards, ends)
    fitness = tracker.compute()
    assert fitness.values.tolist() == [3.0, 6.0]
    assert fitness.counts.tolist() == [2.0, 2.0]
    assert fitness.errors.tolist() == [0.0, 0.0]
    assert fitness.evaluated.all()


def test_only_the_last_episode_of_an_environment_counts():
    tracker = FitnessTracker(torch.tensor([0, 0]), 1)
    steps(tracker, [[0.0, 0.0]], [[1, 1]])
    steps(tracker, [[5.0, 1.0], [7.0, 1.0]], [[1, 0], [1, 0]])
    assert tracker.compute().values.tolist() == [7.0]
    assert tracker.compute().counts.tolist() == [1.0]


def test_value_from_extras_is_read_when_the_episode_ends():
    tracker = FitnessTracker(torch.tensor([0, 1]), 2, source="extras:level")
    with pytest.raises(UserError, match="have only time_outs"):
        steps(tracker, [[0.0, 0.0]], [[1, 1]], {"time_outs": None})
    steps(tracker, [[0.0, 0.0]], [[1, 1]], {"level": torch.tensor([7.0, 7.0])})
    steps(tracker, [[9.0, 9.0]], [[0, 0]], {"level": torch.tensor([100.0, 100.0])})
    steps(tracker, [[9.0, 9.0]], [[1, 1]], {"level": torch.tensor([3.0, 4.0])})
    assert tracker.compute().values.tolist() == [3.0, 4.0]


def test_half_of_an_agents_environments_must_have_finished():
    tracker = FitnessTracker(torch.tensor([0] * 4 + [1] * 4), 2, min_coverage=0.5)
    steps(tracker, [[0.0] * 8], [[1] * 8])
    steps(tracker, [[1.0] * 8], [[1, 0, 0, 0, 1, 1, 0, 0]])
    assert tracker.compute().evaluated.tolist() == [False, True]


def test_a_replaced_agent_is_judged_only_by_episodes_that_began_after_it():
    tracker = FitnessTracker(torch.tensor([0, 1, 1]), 2)
    steps(tracker, [[0.0] * 3], [[1] * 3])
    steps(tracker, [[1.0] * 3], [[1] * 3])
    tracker.restart([1])
    assert tracker.compute().evaluated.tolist() == [True, False]
    steps(tracker, [[50.0] * 3], [[1] * 3])
    assert tracker.compute().values[0] == 50.0 and tracker.compute().values[1].isnan()
    steps(tracker, [[2.0] * 3], [[1] * 3])
    assert tracker.compute().values.tolist() == [2.0, 2.0]


def test_environments_can_be_asked_to_finish_more_than_once():
    tracker = FitnessTracker(torch.tensor([0]), 1, min_episodes=3)
    for number in range(4):
        steps(tracker, [[float(number)]], [[1]])
        assert tracker.compute().evaluated.item() == (number == 3)


def test_state_survives_saving():
    generator = torch.Generator().manual_seed(0)
    first = FitnessTracker(torch.tensor([0, 1] * 4), 2)
    second = FitnessTracker(torch.tensor([0, 1] * 4), 2)
    for number in range(40):
        if number == 20:
            second.load_state_dict(first.state_dict())
        for tracker in (first, second) if number >= 20 else (first,):
            generator.manual_seed(number)
            rewards = torch.rand(8, generator=generator)
            tracker.step(rewards, torch.rand(8, generator=generator) < 0.3, {})
    assert torch.equal(first.compute().values, second.compute().values)


def test_a_logged_mean_belongs_to_all_whose_episodes_end_with_it():
    tracker = FitnessTracker(torch.tensor([0, 1]), 2, source="log:Metrics/success_rate")
    steps(tracker, [[0.0, 0.0]], [[1, 1]], {"log": {"Metrics/success_rate": torch.tensor(0.9)}})
    steps(tracker, [[0.0, 0.0]], [[1, 0]], {"log": {"Metrics/success_rate": torch.tensor(1.0)}})
    # Isaac Lab leaves the log of the last reset where it is
    steps(tracker, [[0.0, 0.0]], [[0, 0]], {"log": {"Metrics/success_rate": torch.tensor(1.0)}})
    steps(tracker, [[0.0, 0.0]], [[0, 1]], {"log": {"Metrics/success_rate": 0.25}})
    assert tracker.compute().values.tolist() == [1.0, 0.25]
    with pytest.raises(UserError, match="the task logs only Metrics/other"):
        steps(tracker, [[0.0, 0.0]], [[0, 0]], {"log": {"Metrics/other": 1.0}})


def test_a_success_rate_is_the_fitness_as_soon_as_it_is_logged():
    tracker = FitnessTracker(torch.tensor([0, 1]), 2, source="success_or_return")
    steps(tracker, [[0.0, 0.0]], [[1, 1]], {"log": {"Metrics/other": 1.0}})
    steps(tracker, [[3.0, 4.0]], [[1, 1]], {"log": {"Metrics/other": 1.0}})
    assert tracker.compute().values.tolist() == [3.0, 4.0], "without one it is the return"
    steps(tracker, [[5.0, 5.0]], [[1, 0]], {"log": {"Metrics/success_rate": torch.tensor(0.75)}})
    fitness = tracker.compute()
    assert fitness.values[0] == 0.75 and not fitness.evaluated[1], "returns are forgotten"
    # an end without a success rate leaves what is known
    steps(tracker, [[5.0, 5.0]], [[1, 0]], {"log": {"Metrics/other": 1.0}})
    other = FitnessTracker(torch.tensor([0, 1]), 2, source="success_or_return")
    other.load_state_dict(tracker.state_dict())
    for each in (tracker, other):
        steps(each, [[5.0, 5.0]], [[0, 1]], {"log": {"Metrics/success_rate": 0.25}})
        assert each.compute().values.tolist() == [0.75, 0.25]


def test_values_by_time_are_the_rate_of_a_long_watch_whatever_ends_first():
    """Episodes go on with every success; at first only those that failed have ended."""
    generator = torch.Generator().manual_seed(0)
    envs, goal = 4000, 30
    tracker = FitnessTracker(torch.zeros(envs, dtype=torch.long), 1, source="rate:successes")
    since, brought, last = (torch.zeros(envs) for _ in range(3))
    reached = steps = 0.0
    for step in range(1500):
        success = torch.rand(envs, generator=generator) < 0.05
        brought, since = brought + success, torch.where(success, 0.0, since + 1.0)
        dones = since >= goal
        last = torch.where(dones, brought, last)
        tracker.step(torch.zeros(envs), dones, {"successes": last})
        brought, since = brought.masked_fill(dones, 0.0), since.masked_fill(dones, 0.0)
        if step >= 750:
            reached, steps = reached + float(success.sum()), steps + envs
    fitness = tracker.compute()
    assert fitness.values[0] == pytest.approx(1000.0 * reached / steps, rel=0.02)
    assert abs(fitness.values[0] - 50.0) < 4.0 * fitness.errors[0] < 4.0


def test_the_error_of_a_rate_is_that_of_its_repetitions():
    generator = torch.Generator().manual_seed(1)
    agents, envs = 500, 30
    ids = torch.arange(agents).repeat_interleave(envs)
    tracker = FitnessTracker(ids, agents, source="rate:found")
    lengths = torch.randint(5, 40, ids.shape, generator=generator)
    found = torch.distributions.Poisson(0.2 * lengths.float())
    torch.manual_seed(2)
    value = found.sample()
    tracker.step(torch.zeros(len(ids)), torch.ones(len(ids)), {"found": value})
    for step in range(1, 40):
        tracker.step(torch.zeros(len(ids)), lengths == step, {"found": value})
    fitness = tracker.compute()
    assert fitness.evaluated.all() and fitness.values.mean() == pytest.approx(200.0, rel=0.01)
    assert fitness.errors.mean() == pytest.approx(float(fitness.values.std()), rel=0.1)
