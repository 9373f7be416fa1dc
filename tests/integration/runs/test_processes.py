"""Two processes over gloo: one policy, learned from two replays."""

import pytest
import torch

from epo_lab.runner.runner import EpoRunner
from support.distributed import run_in_two_processes
from support.equality import assert_same
from support.off_policy import settings
from support.toy_env import ToyEnv

pytestmark = pytest.mark.integration


def train(rank, name):
    cfg = settings(name) | {"seed": 1 + rank}
    torch.manual_seed(100 + rank)
    runner = EpoRunner(ToyEnv(16, seed=rank), cfg)
    runner.learn(8)
    alg = runner.alg
    modules = {key: dict(module.state_dict()) for key, module in alg.learner.modules().items()}
    steps = {key: step.state_dict() for key, step in alg.learner.steps().items()}
    common = {"actor": dict(alg.actor.state_dict()), "factor": alg.return_scale.factor, "clock": alg.clock.state_dict()}
    return {"common": {**common, **modules, **steps}, "replay": alg.replay.state_dict(), "parts": list(alg.parts())}


def everything(rank):
    return {name: train(rank, name) for name in ("SAC", "TD3")}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_in_two_processes(everything, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_all_processes_hold_the_same_networks_and_scales(results, name):
    first, second = (result[name] for result in results)
    assert_same(first["common"], second["common"])
    assert first["common"]["clock"]["gradient_steps"] > 10


@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_every_process_has_a_replay_of_its_own_that_no_checkpoint_keeps(results, name):
    first, second = (result[name] for result in results)
    assert first["replay"]["size"] == second["replay"]["size"] == 32
    assert not torch.equal(first["replay"]["rewards"], second["replay"]["rewards"])
    assert not torch.equal(first["replay"]["generator"], second["replay"]["generator"])
    assert "replay" not in first["parts"]
