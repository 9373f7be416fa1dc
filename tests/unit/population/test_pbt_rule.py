"""Population-based training: who is changed, and how settings mutate (invariant 40)."""

import math
from collections import Counter

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.base.options import build
from epo_lab.population.pbt import PbtOptions, decide, mutate

pytestmark = pytest.mark.unit

OPTIONS = PbtOptions()
SETTINGS = {"max_grad_norm": 1.0, "clip_param": 0.1, "num_learning_epochs": 2, "gamma": 0.99}
OBJECTIVES = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def changed(objectives, *, reached=None, ready=None, seed=0, options=OPTIONS):
    reached = objectives if reached is None else reached
    return decide(objectives, reached, ready or [True] * len(objectives), options, draw(seed))


def test_the_worst_three_of_eight_take_over_from_the_best_three():
    donors = Counter()
    for seed in range(300):
        changes = changed(OBJECTIVES, seed=seed)
        assert [change.policy for change in changes] == [0, 1, 2]
        for change in changes:
            assert change.settings_from in (change.policy, change.weights_from)
            donors[change.weights_from] += 1
    assert set(donors) == {5, 6, 7} and min(donors.values()) > 250


def test_settings_come_from_either_with_equal_chance():
    own = sum(change.settings_from == change.policy for seed in range(300) for change in changed(OBJECTIVES, seed=seed))
    assert own / 900 == pytest.approx(0.5, abs=0.06)


def test_who_is_not_far_behind_keeps_its_weights_and_still_mutates():
    changes = changed([100.0, 100.1, 100.2, 100.3, 100.4, 100.5, 100.6, 100.7])
    assert [change.policy for change in changes] == [0, 1, 2]
    for change in changes:
        assert change.weights_from == change.settings_from == change.policy, "ahead by less than 5 %"


def test_the_threshold_is_half_a_deviation_without_the_lowest_fifth():
    objectives = [0.0, 9.0, 9.5, 10.0, 10.5, 11.0, 14.0, 14.0]
    kept = objectives[1:]
    mean = sum(kept) / len(kept)
    spread = math.sqrt(sum((value - mean) ** 2 for value in kept) / len(kept))
    for threshold, takes in ((4.9 / spread, True), (5.1 / spread, False)):
        options = PbtOptions(threshold_std=threshold)
        donors = set()
        for seed in range(40):
            (change,) = [c for c in changed(objectives, seed=seed, options=options) if c.policy == 1]
            donors.add(change.weights_from)
        assert bool(donors & {6, 7}) == takes


def test_nobody_is_changed_without_a_reason():
    assert changed(OBJECTIVES, ready=[False] * 8) == []
    assert [c.policy for c in changed(OBJECTIVES, ready=[True, False, True] + [False] * 5)] == [0, 2]
    # who has been as good as the best since the last check only had bad luck
    assert [c.policy for c in changed(OBJECTIVES, reached=[60.0, 59.0, 30.0, *OBJECTIVES[3:]])] == [1, 2]
    unknown = [math.nan] * 4
    assert changed([*unknown, 1.0, 2.0, 3.0, 4.0]) == []
    assert [c.policy for c in changed([*unknown[:3], 1.0, 2.0, 3.0, 4.0, 5.0])] == [3, 4]


@pytest.mark.parametrize("number", [2, 3, 4, 8, 64])
def test_the_best_are_never_changed(number):
    for seed in range(20):
        objectives = torch.rand(number, generator=draw(seed)).tolist()
        best = sorted(range(number), key=lambda p: -objectives[p])[: math.ceil(0.3 * number)]
        assert not {change.policy for change in changed(objectives, seed=seed)} & set(best)


def test_settings_mutate_in_their_ranges():
    options = PbtOptions(mutation_rate=1.0)
    generator = draw()
    rows = [mutate(SETTINGS, options, generator) for _ in range(2000)]
    factors = torch.tensor([row["max_grad_norm"] for row in rows])
    assert (((factors >= 1.1) & (factors <= 1.5)) | ((factors >= 1 / 1.5) & (factors <= 1 / 1.1))).all()
    assert (factors > 1).float().mean().item() == pytest.approx(0.5, abs=0.04)
    assert factors.max() > 1.49 and factors.min() < 0.672
    assert {row["num_learning_epochs"] for row in rows} == {1, 3}
    distances = torch.tensor([1 - row["gamma"] for row in rows], dtype=torch.float64) / 0.01
    assert (((distances > 1.099) & (distances < 1.201)) | ((distances > 0.833) & (distances < 0.91))).all()
    settings = dict(SETTINGS)
    for _ in range(3000):
        settings = mutate(settings, options, generator)
        assert 0.01 <= settings["clip_param"] <= 0.3 and 1 <= settings["num_learning_epochs"] <= 8
        assert 0.0 < settings["gamma"] < 1.0


def test_settings_mutate_as_often_as_asked():
    generator, count = draw(), 0
    for _ in range(2000):
        count += sum(new != old for new, old in zip(mutate(SETTINGS, OPTIONS, generator).values(), SETTINGS.values()))
    assert count / 8000 == pytest.approx(0.15, abs=0.02)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("interval_steps", 0, "at least 1"),
        ("replace_fraction", 0.8, "replace_fraction"),
        ("mutation_rate", 2.0, "between 0 and 1"),
        ("change", (0.5, 2.0), "two factors"),
        ("mutated", {"gamma": "double"}, "one of factor, clip, epochs, discount"),
    ],
)
def test_options_are_checked(option, value, message):
    with pytest.raises(UserError, match=message):
        build(PbtOptions, {option: value})
