"""Two processes over gloo (invariants 33 to 35)."""

import copy
import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch
from benchmarks.scaling import gradients_of, sent_bytes

from epo_lab.base.options import merge
from epo_lab.base.processes import check_agreement, joint_mean, mean_and_std
from epo_lab.population.fitness import FitnessTracker
from epo_lab.runner.runner import EpoRunner
from support.distributed import run_in_two_processes
from support.equality import assert_same
from support.toy_env import ToyEnv, settings

pytestmark = pytest.mark.integration

AGENTS, ENVS, STEPS = 4, 16, 60
WIDE = {"actor": {"hidden_dims": [128, 128]}, "critic": {"hidden_dims": [128, 128]}}


def train_population(rank):
    cfg = settings(
        num_agents=AGENTS,
        evolution__trigger="interval",
        evolution__warmup_steps=24,
        evolution__interval_steps=24,
        normalize_value=True,
    )
    cfg["seed"] = 1 + rank
    torch.manual_seed(100 + rank)
    runner = EpoRunner(ToyEnv(ENVS, seed=rank), cfg)
    runner.learn(12)
    alg = runner.alg
    return {
        "actor": alg.actor.state_dict(),
        "critic": alg.critic.state_dict(),
        "optimizer": alg.optimizer.state_dict(),
        "value_normalizer": alg.value_normalizer.state_dict(),
        "genetics": alg.evolution.state_dict(),
        "rate": alg.learning_rate,
    }


def stopped_by_one(rank):
    """Train with a SIGTERM that reaches the second process only."""
    runner = EpoRunner(ToyEnv(ENVS, seed=rank), settings(num_agents=AGENTS) | {"seed": 1 + rank})
    done = []

    def watch(iteration):
        done.append(iteration)
        if rank == 1 and iteration == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    return runner.learn(5, watch=watch), done


def test_the_signal_of_one_process_ends_all_in_the_same_iteration(results):
    assert [result["stopped"] for result in results] == [(signal.SIGTERM, [0, 1])] * 2


def reduced_bytes(rank):
    """Return the bytes that the processes exchange in an iteration, and those of its gradients."""
    runner = EpoRunner(ToyEnv(ENVS, seed=rank), merge(settings(num_agents=AGENTS), WIDE) | {"seed": 1 + rank})
    runner.learn(1)
    with sent_bytes() as sizes:
        runner.alg.broadcast_parameters = lambda: None
        runner.learn(1)
    return sum(sizes), gradients_of(runner.alg)


def test_an_iteration_reduces_what_arithmetic_says(results):
    for result in results:
        carried, expected = result["reduced"]
        assert expected <= carried < 1.02 * expected


def everything(rank):
    """All that runs in the two processes, which take long to start."""
    mean, std = mean_and_std(part(rank))
    return {
        "stopped": stopped_by_one(rank),
        "reduced": reduced_bytes(rank),
        "drifted": drifted(rank),
        "fitness": joint_fitness(rank),
        "normalized": (part(rank) - mean) / (std + 1e-8),
        "mean": joint_mean(part(rank)),
        "resumed": resume_a_curriculum(rank),
        "taken": taken_generators(rank),
        "seeds": [column_seed(rank, sampling) for sampling in ("block", "symmetric", "envs")],
        "population": train_population(rank),
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_in_two_processes(everything, tmp_path_factory.mktemp("ranks"))


def test_all_processes_hold_the_same_population_after_events(results):
    first, second = (result["population"] for result in results)
    assert first["genetics"]["events"] >= 2
    # who belongs to whom is the first process's to log, everything that learns is common
    for key in ("actor", "critic", "optimizer", "value_normalizer", "rate"):
        assert_same(first[key], second[key], key)


class Levels(ToyEnv):
    """Has a curriculum, which belongs to the checkpoint."""

    state_is_shared = True
    level = 0

    def state_dict(self):
        return {"level": self.level}

    def load_state_dict(self, state):
        self.level = state["level"]
        return False


def resume_a_curriculum(rank):
    folder = [tempfile.mkdtemp()]
    torch.distributed.broadcast_object_list(folder, src=0)
    path = str(Path(folder[0]) / "model_0.pt")
    levels = []
    for env_class in (Levels, type("LevelsOfItsOwn", (Levels,), {"state_is_shared": False})):
        env = env_class(ENVS, seed=rank)
        runner = EpoRunner(env, settings(num_agents=AGENTS))
        env.level = 5 + rank
        if rank == 0:
            runner.save(path)
        torch.distributed.barrier()
        env.level = 0
        before = torch.get_rng_state()
        runner.resume(path)
        levels.append(env.level)
        assert torch.equal(before, torch.get_rng_state()), "random numbers of the processes stay different"
    return levels


def column_seed(rank, sampling):
    cfg = settings(num_agents=AGENTS, off_policy__sampling=sampling) | {"seed": 1 + rank}
    return EpoRunner(ToyEnv(ENVS, seed=rank), cfg).alg.column_generator.initial_seed()


def taken_generators(rank):
    """Return whether a process takes up its own generator of columns from a state, and another one's."""
    cfg, taken = settings(num_agents=AGENTS, off_policy__sampling="envs") | {"seed": 1 + rank}, []
    for owner in (rank, 1 - rank):
        runner = EpoRunner(ToyEnv(ENVS, seed=rank), copy.deepcopy(cfg))
        columns = runner.alg.parts()["columns"].owner
        state = columns.state_dict() | {"generator": torch.Generator().manual_seed(7).get_state(), "rank": owner}
        columns.load_state_dict(state)
        taken.append(torch.equal(columns.state_dict()["generator"], state["generator"]))
    return taken


def test_a_process_goes_on_with_its_own_columns_only(results):
    assert [result["taken"] for result in results] == [[True, False]] * 2


def test_whole_agents_are_chosen_alike_and_columns_by_each_process(results):
    first, second = (result["seeds"] for result in results)
    assert first[:2] == second[:2] and first[2] != second[2]


def test_curricula_are_restored_on_all_processes(results):
    assert [result["resumed"] for result in results] == [[5, 0], [5, 0]]


def test_a_mean_is_that_of_all_processes(results):
    expected = torch.cat([part(0), part(1)]).mean()
    for result in results:
        torch.testing.assert_close(result["mean"], expected)


def episodes(seed):
    generator = torch.Generator().manual_seed(seed)
    rewards = torch.randn(STEPS, ENVS, generator=generator)
    dones = (torch.rand(STEPS, ENVS, generator=generator) < 0.1).long()
    return rewards, dones


def joint_fitness(rank):
    tracker = FitnessTracker(torch.arange(ENVS) % AGENTS, AGENTS)
    rewards, dones = episodes(rank)
    for reward, done in zip(rewards, dones, strict=True):
        tracker.step(reward, done, {})
    fitness = tracker.compute()
    return fitness.values, fitness.counts, fitness.errors


def test_fitness_is_that_of_all_environments_together(results):
    first, second = (result["fitness"] for result in results)
    assert_same(first, second)
    tracker = FitnessTracker((torch.arange(ENVS) % AGENTS).repeat(2), AGENTS)
    parts = [episodes(rank) for rank in range(2)]
    for step in range(STEPS):
        tracker.step(torch.cat([p[0][step] for p in parts]), torch.cat([p[1][step] for p in parts]), {})
    whole = tracker.compute()
    torch.testing.assert_close(first[0], whole.values)
    assert torch.equal(first[1], whole.counts)
    torch.testing.assert_close(first[2], whole.errors)


def part(rank):
    return torch.randn(50, 7, 1, generator=torch.Generator().manual_seed(rank)) * (1 + 3 * rank) + rank


def test_advantages_are_normalised_over_all_processes(results):
    first, second = (result["normalized"] for result in results)
    whole = torch.cat([part(0), part(1)])
    expected = (whole - whole.mean()) / (whole.std() + 1e-8)
    torch.testing.assert_close(torch.cat([first, second]), expected, rtol=1e-5, atol=1e-6)


def drifted(rank):
    check_agreement(torch.ones(3))
    try:
        check_agreement(torch.full((3,), 1.0 + 1e-6 * rank))
    except RuntimeError as error:
        return str(error)
    return ""


def test_processes_that_drift_apart_are_noticed(results):
    assert all("drifted apart" in result["drifted"] for result in results)
