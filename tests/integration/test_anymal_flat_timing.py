"""Rewards do not depend on how a policy step is divided into physics steps."""

import pytest
import torch

from support.envs import make_env

pytestmark = pytest.mark.integration


def mean_reward(*overrides: str) -> float:
    with make_env("Epo-Anymal-Flat-v0", *overrides, num_envs=64) as env:
        env.command_manager.get_term("base_velocity").vel_command_b[:] = torch.tensor([0.3, 0.1, -0.2])
        total = 0.0
        for _ in range(100):
            total += env.step(torch.zeros(64, 12))[1].mean().item()
        return total / 100


def test_halving_dt_and_doubling_decimation_keeps_rewards():
    coarse = mean_reward("physics=ovphysx")
    fine = mean_reward("physics=ovphysx", "env.sim.dt=0.005", "env.decimation=4")
    assert fine == pytest.approx(coarse, rel=0.01)
