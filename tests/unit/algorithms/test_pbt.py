"""Population-based training: independent policies, and what a change copies (invariant 40)."""

import copy
import math
from itertools import pairwise

import pytest
import torch

from epo_lab.algorithms.pbt import PBT
from epo_lab.base.errors import UserError
from epo_lab.population.evolution import Child, Generation, apply
from support.equality import assert_same
from support.toy_env import ToyEnv, make, rollout, settings, train

pytestmark = pytest.mark.unit

POPULATION = {
    "class_name": "epo_lab.algorithms:PBT",
    "num_agents": 4,
    "normalize_value": True,
    "pbt__interval_steps": 24,
    "pbt__start_after_steps": 24,
    "pbt__initial_delay_steps": 24,
}


def population(recurrent=None, **options):
    env = ToyEnv()
    return env, make(env, settings(recurrent, **{**POPULATION, **options}))


def test_policies_have_networks_settings_and_environments_of_their_own():
    _, algorithm = population(pbt__mutation_rate=1.0)
    assert isinstance(algorithm, PBT)
    assert sorted(torch.cat(algorithm.columns).tolist()) == list(range(16))
    weights = [policy.actor.mlp[0].weight for policy in algorithm.policies]
    assert all((first != second).any() for first, second in pairwise(weights))
    assert len({policy.gamma for policy in algorithm.policies}) == 4, "all settings mutate at the start"
    assert all(policy.actor.genes is None for policy in algorithm.policies)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_a_policy_learns_as_it_would_alone(recurrent):
    """Its data are its own columns: another policy's weights change nothing about its update."""
    results = []
    for disturbed in (False, True):
        env, algorithm = population(recurrent, pbt__initial_delay_steps=10_000)
        if disturbed:
            with torch.no_grad():
                for parameter in algorithm.policies[1].critic.parameters():
                    parameter.mul_(2.0)
        rollout(algorithm, env, 8)
        torch.manual_seed(5)
        algorithm.policies[0].update()
        results.append(algorithm.policies[0].save())
    assert_same(*results)


def test_actions_go_to_the_environments_of_their_policies():
    env, algorithm = population()
    with torch.no_grad():
        for index, policy in enumerate(algorithm.policies):
            policy.actor.mlp[-1].weight.zero_()
            policy.actor.mlp[-1].bias.fill_(10.0 * index)
            policy.actor.distribution.log_std_param.fill_(-5.0)
    with torch.inference_mode():
        actions = algorithm.act(env.get_observations())
    torch.testing.assert_close(actions.mean(dim=1), 10.0 * algorithm.agent_ids.float(), atol=0.1, rtol=0)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_a_change_copies_the_donor_exactly_and_nothing_else(recurrent):
    env, algorithm = population(recurrent, pbt__initial_delay_steps=10_000)
    train(algorithm, env, 3)
    before = [copy.deepcopy(policy.save()) for policy in algorithm.policies]
    pool = algorithm.genome
    settings_before = [pool.settings(index) for index in range(4)]
    rows = pool.read()
    apply(Generation([Child(0, (2,), rows[2]), Child(3, (3,), rows[3])], {}), pool)
    after = [policy.save() for policy in algorithm.policies]
    for part in (
        lambda saved: saved["actor_state_dict"],
        lambda saved: saved["critic_state_dict"],
        lambda saved: saved["parts"]["value_normalizer"],
    ):
        assert_same(part(after[0]), part(before[2]))
        for index in (1, 2, 3):
            assert_same(part(after[index]), part(before[index]))
    assert_same(after[0]["optimizer_state_dict"]["state"], before[2]["optimizer_state_dict"]["state"])
    assert pool.settings(0) == settings_before[2] and isinstance(pool.settings(0)["num_learning_epochs"], int)
    assert algorithm.policies[0].learning_rate == algorithm.policies[2].learning_rate
    # a copy, and no second name: what happens to one leaves the other alone
    for tensors in (lambda policy: policy.actor.state_dict().values(), moments):
        first, second = (list(tensors(algorithm.policies[index])) for index in (0, 2))
        assert first and all(a.data_ptr() != b.data_ptr() for a, b in zip(first, second, strict=True))


def moments(policy):
    return [state[name] for state in policy.optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]


def test_changes_come_when_they_are_due():
    quick = {"num_learning_epochs": 1, "num_mini_batches": 1, "pbt__mutated": {"gamma": "discount"}}
    env, algorithm = population(pbt__initial_delay_steps=48, pbt__threshold_std=0.0, pbt__threshold_abs=0.0, **quick)
    seen = []
    for _ in range(15):
        train(algorithm, env, 1)
        seen.append(algorithm.evolution.checks)
    # eight steps an iteration: after 48, then every 24
    assert seen == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert algorithm.evolution.events >= 1
    assert algorithm.scalars()["Generation/checks"] == 4.0
    assert "Settings/gamma" in algorithm.scalars() and "Population/fitness_max" in algorithm.scalars()


def test_a_policy_that_took_over_weights_is_judged_by_episodes_under_them():
    env, algorithm = population(pbt__threshold_std=0.0, pbt__threshold_abs=0.0)
    while algorithm.evolution.events == 0:
        train(algorithm, env, 1)
    changes = algorithm.records()["pbt"][-1]["changes"]
    taken = [change["policy"] for change in changes if change["weights_from"] != change["policy"]]
    for policy in taken:
        assert algorithm.fitness._notes.tainted[algorithm.columns[policy]].all()
    assert taken and not algorithm.fitness._notes.tainted.all()


def test_a_policy_is_judged_when_all_its_environments_have_finished():
    _, algorithm = population(fitness__min_episodes=2)
    tracker = algorithm.fitness
    tracker._notes.tainted.zero_()
    done = torch.ones(16, dtype=torch.long)
    late = algorithm.columns[1][0]
    for _ in range(2):
        tracker.step(torch.arange(16.0), done, {})
    assert not algorithm.objectives().isnan().any()
    tracker.restart([1])
    done[late] = 0
    for _ in range(5):
        tracker.step(torch.arange(16.0), done, {})
    assert algorithm.objectives().isnan().tolist() == [False, True, False, False]


def test_only_what_was_reached_since_the_last_check_counts():
    env, algorithm = population(pbt__initial_delay_steps=48)
    train(algorithm, env, 2)
    algorithm.evolution._reached = [9.0] * 4
    train(algorithm, env, 1)
    assert algorithm.evolution._reached == [-math.inf] * 4, "24 steps: a new interval, though nothing is decided yet"
    assert algorithm.evolution.checks == 0


def test_settings_that_mutate_take_effect():
    rules = {"entropy_coef": "factor", "lr_min": "factor", "learning_rate": "factor"}
    _, algorithm = population(pbt__mutation_rate=1.0, pbt__mutated=rules, entropy_coef=0.01)
    for policy in algorithm.policies:
        assert policy._entropy_coef == policy.entropy_coef != 0.01
        assert policy._schedule._least_rate == policy.options.lr_min != 1e-5
        assert all(group["lr"] == policy.learning_rate for group in policy.optimizer.param_groups)
    with pytest.raises(UserError, match="desired_kl has no value"):
        population(desired_kl=None)


def test_the_best_policy_is_what_others_load():
    env, algorithm = population(pbt__initial_delay_steps=10_000)
    train(algorithm, env, 6)
    values = algorithm.fitness.compute().values
    best = algorithm.policies[int(values.argmax())]
    assert algorithm.policy() is best.actor and not values.isnan().any()
    saved = algorithm.save()
    assert_same(saved["actor_state_dict"], best.actor.state_dict())
    single = make(ToyEnv(), settings(num_agents=1, normalize_value=True))
    single.load({**saved, "iter": 5}, {"actor": True}, True)
    assert_same(single.actor.state_dict(), saved["actor_state_dict"])


def test_policies_that_do_not_fit_are_refused_in_training_and_allowed_in_play():
    env = ToyEnv(num_envs=10)
    with pytest.raises(UserError, match="4 agents cannot share 10"):
        make(env, settings(**POPULATION))
    cfg = settings(**POPULATION)
    players = PBT.construct_algorithm(env.get_observations(), env, cfg, "cpu")
    trained = make(ToyEnv(), settings(**POPULATION))
    train(trained, ToyEnv(), 6)
    with torch.no_grad():
        trained.policies[2].actor.mlp[0].bias.fill_(7.0)
    with torch.inference_mode():
        trained.fitness._last[trained.columns[2]] = 1e6
    trained.evolution.note(trained.objectives().tolist())
    assert trained.policy() is trained.policies[2].actor
    saved = {**copy.deepcopy(trained.save()), "iter": 5}
    players.load(saved, None, True)
    assert (players.get_policy().mlp[0].bias == 7.0).all()
    # with other environments the fitness is unknown, and the best is who was it
    other = make(ToyEnv(num_envs=8), settings(**POPULATION))
    other.load(saved, None, True)
    assert other.objectives().isnan().all() and (other.get_policy().mlp[0].bias == 7.0).all()
    with pytest.raises(UserError, match="3 processes cannot divide 4 policies"):
        make(ToyEnv(), settings(**POPULATION) | {"multi_gpu": {"global_rank": 0, "world_size": 3}})
