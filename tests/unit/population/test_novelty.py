"""Immigrants whose policies differ from everybody's: the distance against an integral, the choice by hand."""

import itertools

import pytest
import torch

from epo_lab.algorithms.on_policy.census import choose_novel
from epo_lab.population.novelty import most_novel, policy_distance
from support.toy_env import ToyEnv, make, rollout, settings, train

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6}


def test_distance_is_hellingers():
    """Integrate (sqrt p - sqrt q)^2 / 2 of two Gaussians on a grid."""
    std, x = 0.7, torch.linspace(-12.0, 12.0, 20001, dtype=torch.float64)
    means = torch.tensor([-1.0, 0.3, 2.5], dtype=torch.float64)
    roots = [torch.distributions.Normal(mean, std).log_prob(x).exp().sqrt() for mean in means]
    found = policy_distance(means.view(3, 1, 1), means.view(3, 1, 1), torch.tensor([std], dtype=torch.float64))
    for i, j in itertools.product(range(3), repeat=2):
        expected = 0.5 * torch.trapezoid((roots[i] - roots[j]).square(), x)
        assert float(found[i, j]) == pytest.approx(float(expected), abs=1e-9)


def test_distance_is_a_mean_over_states_and_joins_dimensions():
    first, second = torch.randn(2, 5, 3), torch.randn(4, 5, 3)
    std = torch.tensor([0.5, 1.0, 2.0])
    found = policy_distance(first, second, std)
    assert found.shape == (2, 4)
    one = [1 - torch.exp(-((first[1, s] - second[2, s]) / std).square().sum() / 8) for s in range(5)]
    torch.testing.assert_close(found[1, 2], torch.stack(one).mean())


def test_the_choice_is_far_from_agents_and_from_each_other():
    std = torch.ones(1)
    agents = torch.tensor([0.0, 1.0]).view(2, 1, 1)
    # two candidates beside each other on the right, one on the left, one among the agents
    candidates = torch.tensor([0.5, 6.0, 6.1, -4.0]).view(4, 1, 1)
    assert most_novel(agents, candidates, std, 2) == [2, 3], "not both of those on the right"


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_genes_that_are_there_already_do_not_come(recurrent):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, evolution__trigger="off"))
    rollout(algorithm, env, 8)
    before = algorithm.actor.genes.clone()
    states = (algorithm._raw_actor, algorithm.storage, algorithm.agent_ids, algorithm.num_agents)
    copies = algorithm.actor.genes.detach().repeat(3, 1)
    others = 3.0 * torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
    live = algorithm.actor.get_hidden_state()
    chosen = choose_novel(*states, torch.cat([copies, others]), 2)
    assert sorted(chosen) == [12, 13]
    assert torch.equal(algorithm.actor.genes, before)
    after = algorithm.actor.get_hidden_state()
    assert live is after or all(map(torch.equal, live, after)), "looking leaves the recurrent state alone"


def test_a_population_takes_in_immigrants_and_says_who_was_chosen():
    env = ToyEnv(num_envs=32)
    evolution = {"immigrants": 1.0, "candidates": 8, "trigger": "interval", "warmup_steps": 0, "num_elites": 0.5}
    cfg = settings(num_agents=8, genes__dim=6, **{f"evolution__{name}": value for name, value in evolution.items()})
    algorithm = make(env, cfg)
    noise = algorithm.actor.distribution.log_std_param
    with torch.no_grad():
        noise.fill_(-2.0)
    train(algorithm, env, 12)
    (first, *_) = algorithm.records()["lineage"]
    assert first["children"] and all(child["parents"] == [] for child in first["children"])
    assert len(first["chosen"]) == len(first["children"]) and max(first["chosen"]) >= len(first["chosen"])
    # those who came have the first action noise again, whatever the others' is
    newest = [slot for slot, birth in enumerate(algorithm.evolution.births) if birth > 0]
    assert newest and (noise[newest] > -1.0).all() and (noise[0] < -1.0).all()
