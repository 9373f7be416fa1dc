"""Genes are scaled until agents differ as much as was asked for, on every network."""

import pytest
import torch

from epo_lab.algorithms.on_policy.census import policies_in_the_same_states
from epo_lab.population.divergence import pairwise_kl
from support.equality import assert_same
from support.toy_env import ToyEnv, make, settings, train

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6, "evolution__trigger": "interval"}


def trained(recurrent=None, **options):
    """Return a population after its first iteration; it is drawn alike every time."""
    torch.manual_seed(0)
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, **options))
    train(algorithm, env, 1)
    return algorithm


def divergence(algorithm) -> float:
    states = (algorithm._raw_actor, algorithm.storage, algorithm.agent_ids, 4)
    found = pairwise_kl(*policies_in_the_same_states(*states))
    return found[~torch.eye(4, dtype=torch.bool)].mean().item()


@pytest.mark.parametrize(
    ("recurrent", "init_std", "target"),
    [(None, 0.5, 0.1), (None, 2.0, 0.5), ("lstm", 0.5, 0.003), ("lstm", 2.0, 0.003)],
)
def test_agents_differ_as_much_as_was_asked_for(recurrent, init_std, target):
    plain, calibrated = [trained(recurrent, genes__init_std=init_std, genes__target_kl=kl) for kl in (None, target)]
    assert divergence(calibrated) == pytest.approx(target, rel=0.02)
    # the master stays who it is, and everybody keeps the direction in which it differs
    genes, drawn = calibrated.actor.genes.detach(), plain.actor.genes.detach()
    torch.testing.assert_close(genes[0], drawn[0])
    factor = calibrated.scalars()["Population/gene_factor"]
    torch.testing.assert_close(genes - genes[0], factor * (drawn - drawn[0]), rtol=1e-3, atol=1e-4)
    assert calibrated.evolution._gene_scale == pytest.approx(factor * init_std)
    # once, and never again
    train(calibrated, ToyEnv(), 1)
    assert "Population/gene_factor" not in calibrated.scalars()


def test_what_cannot_be_reached_is_not_forced():
    assert trained("lstm", genes__target_kl=100.0).scalars()["Population/gene_factor"] == pytest.approx(10.0, rel=1e-3)


def test_a_resumed_run_mutates_in_the_same_unit():
    algorithm = trained(genes__target_kl=0.5)
    again = make(ToyEnv(), settings(**POPULATION, genes__target_kl=0.5))
    again.load({**algorithm.save(), "iter": 0}, None, True)
    assert again.evolution._gene_scale == algorithm.evolution._gene_scale != 1.0
    assert_same(again.evolution.state_dict(), algorithm.evolution.state_dict())
