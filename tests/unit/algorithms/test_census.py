"""The closer look at a population (invariant 39): divergences and gradients against torch's own, one by one."""

import json
import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from epo_lab.algorithms.on_policy.census import policies_in_the_same_states
from epo_lab.diagnostics.memory import MemoryEnv
from epo_lab.population.divergence import cosine, nearest_is_master, pairwise_kl
from epo_lab.runner.runner import EpoRunner
from support.toy_env import ToyEnv, make, rollout, settings, train

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6, "evolution__trigger": "off", "census_interval": 2}


def compared(algorithm):
    return policies_in_the_same_states(algorithm.actor, algorithm.storage, algorithm.agent_ids, algorithm.num_agents)


def test_pairwise_divergence_is_torchs_for_every_pair():
    torch.manual_seed(0)
    mean, std = 5.0 + torch.randn(5, 30, 3), torch.rand(5, 30, 3) + 0.2
    expected = torch.zeros(5, 5)
    for i in range(5):
        for j in range(5):
            pair = kl_divergence(Normal(mean[i], std[i]), Normal(mean[j], std[j]))
            expected[i, j] = pair.sum(dim=-1).mean()
    divergence = pairwise_kl(mean, std)
    torch.testing.assert_close(divergence.float(), expected, rtol=1e-5, atol=1e-6)
    assert (divergence >= 0).all() and (divergence.diagonal() == 0).all()


def test_equal_policies_have_no_divergence():
    mean, std = torch.randn(1, 50, 3).expand(4, -1, -1), torch.rand(1, 50, 3).expand(4, -1, -1) + 0.1
    assert pairwise_kl(mean, std).max() < 1e-12


def test_nearest_is_master_counts_followers_and_never_themselves():
    divergence = torch.tensor([[0.0, 9.0, 9.0, 9.0], [1.0, 0.0, 2.0, 3.0], [5.0, 4.0, 0.0, 6.0], [1.0, 2.0, 3.0, 0.0]])
    assert nearest_is_master(divergence) == pytest.approx(2 / 3)


def test_cosine_of_gradients():
    assert cosine([torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])], [torch.ones(2), torch.ones(1, 1)]) == (
        pytest.approx(7.0 / (5.0 * math.sqrt(3.0)))
    )
    assert cosine([torch.zeros(2)], [torch.ones(2)]) == 0.0


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_agents_are_compared_in_states_of_all_of_them(recurrent):
    """Every agent's policy in its own columns is the one that acted there."""
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION))
    train(algorithm, env, 1)
    rollout(algorithm, env, 8)
    before = torch.get_rng_state(), algorithm.actor.output_mean
    mean, std = compared(algorithm)
    assert mean.shape == std.shape == (4, 16, 3)
    for agent in range(4):
        own = slice(4 * agent, 4 * agent + 4)
        columns = (algorithm.agent_ids == agent).nonzero().flatten()
        stored = [params[0, columns] for params in algorithm.storage.distribution_params]
        torch.testing.assert_close(mean[agent, own], stored[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(std[agent, own], stored[1], rtol=1e-5, atol=1e-6)
    assert torch.equal(torch.get_rng_state(), before[0]), "nothing is drawn"
    assert algorithm.actor.output_mean is before[1], "what is logged about the last output stays"


def test_large_populations_are_compared_in_fewer_states():
    env = ToyEnv(num_envs=1024)
    algorithm = make(env, settings(**{**POPULATION, "num_agents": 512}))
    rollout(algorithm, env, 8)
    mean, _ = compared(algorithm)
    assert mean.shape == (512, 128, 3)


def test_the_cosine_is_that_of_separate_backward_passes():
    env = ToyEnv()
    algorithm = make(env, settings(**{**POPULATION, "census_interval": 1}, num_mini_batches=1, num_learning_epochs=1))
    train(algorithm, env, 2)
    rollout(algorithm, env, 8)
    (batch,) = algorithm.storage.mini_batch_generator(1, 1)
    gradients = []
    for rows in (batch.relabelled, ~batch.relabelled):
        algorithm.actor.zero_grad()
        algorithm.actor(batch.observations, stochastic_output=True)
        log_prob = algorithm.actor.get_output_log_prob(batch.actions)
        ratio = torch.exp(log_prob - batch.old_actions_log_prob.squeeze(-1))
        advantages = batch.advantages.squeeze(-1)
        torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)[rows].mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in algorithm.actor.mlp.parameters()]))
    expected = torch.nn.functional.cosine_similarity(*gradients, dim=0)
    algorithm.actor.zero_grad()
    algorithm.update()
    assert algorithm.scalars()["Population/gradient_cosine"] == pytest.approx(float(expected), abs=1e-4)


def test_a_census_changes_nothing_and_comes_at_its_interval():
    results, tags = [], []
    for interval in (0, 2):
        env = ToyEnv()
        algorithm = make(env, settings(**{**POPULATION, "census_interval": interval}))
        for _ in range(4):
            train(algorithm, env, 1)
            tags.append("Population/kl_pairwise" in algorithm.scalars())
        results.append({name: p.clone() for name, p in algorithm.actor.named_parameters()})
    assert tags == [False] * 4 + [False, True, False, True]
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_ratios_of_all_followers_are_those_of_the_relabelled_columns(recurrent):
    """With every follower's column relabelled, the ratios that the master learns with are the same numbers."""
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **{**POPULATION, "off_policy__sampling": "all", "census_interval": 1}))
    rollout(algorithm, env, 8)
    noted = algorithm._noted
    assert noted["Population/is_deviation"] > 1e-3
    torch.testing.assert_close(noted["Population/is_deviation_all"], noted["Population/is_deviation"])


def test_a_run_keeps_a_record_of_every_agent(tmp_path):
    torch.manual_seed(3)
    cfg = settings("lstm", **{**POPULATION, "num_agents": 8, "fitness__source": "extras:score"}) | {
        "num_steps_per_env": 16
    }
    EpoRunner(MemoryEnv(64, seed=3), cfg, log_dir=str(tmp_path)).learn(5)
    records = [json.loads(line) for line in (tmp_path / "population.jsonl").read_text().splitlines()]
    assert [record["iteration"] for record in records] == [2, 4]
    for record in records:
        for name in ("fitness", "entropy", "action_std", "gene_norm", "gene_id", "gene_age", "kl_to_master"):
            assert len(record[name]) == 8
            assert all(math.isfinite(value) for value in record[name])
        assert [row[0] for row in record["kl"]] == record["kl_to_master"]
        # the entropy of a Gaussian with independent actions: one action here
        for entropy, std in zip(record["entropy"], record["action_std"], strict=True):
            assert entropy == pytest.approx(0.5 * math.log(2 * math.pi * math.e * std**2), rel=1e-4)
