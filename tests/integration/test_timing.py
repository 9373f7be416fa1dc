"""Rewards do not depend on how a policy step is divided into physics steps."""

import statistics

import pytest
import torch
from isaaclab_tasks.utils import resolve_task_config

from support.envs import make_env

pytestmark = pytest.mark.integration

NUM = 64
RANGES = "env.commands.base_velocity.ranges"
SLOWLY = (f"{RANGES}.lin_vel_x=[0.3,0.3]", f"{RANGES}.lin_vel_y=[0.1,0.1]", f"{RANGES}.ang_vel_z=[-0.2,-0.2]")


def mean_reward(
    task: str, begin: int, end: int, fixed: tuple[str, ...], action: tuple[float, ...], halves: int
) -> tuple[float, float]:
    """Return the mean reward of a step, and that of the sizes of all its terms."""
    cfg, _ = resolve_task_config(task, None, overrides=[])
    dt, decimation = cfg.sim.dt, cfg.decimation
    timing = (f"env.sim.dt={dt / halves}", f"env.decimation={decimation * halves}")
    with make_env(task, "physics=ovphysx", *fixed, *timing, num_envs=NUM) as env:
        assert env.step_dt == pytest.approx(dt * decimation)
        actions = torch.tensor(action).expand(NUM, env.action_manager.total_action_dim)
        rewards, sizes = [], []
        for _ in range(end):
            rewards.append(env.step(actions)[1].mean().item())
            sizes.append(env.step_dt * env.reward_manager._step_reward.abs().sum(-1).mean().item())
        return statistics.mean(rewards[begin:]), statistics.mean(sizes[begin:])


# from this step to that one: the A1 is dropped from 14 cm, and how it lands depends on the steps of the engine
@pytest.mark.parametrize(
    ("task", "begin", "end", "fixed", "action"),
    [
        ("Epo-Anymal-Flat-v0", 0, 100, SLOWLY, (0.0,)),
        pytest.param("Epo-A1-Flat-v0", 100, 120, SLOWLY, (0.0,), marks=pytest.mark.slow),
        # a hand that turns and moves up and aside touches nothing
        ("Epo-Franka-CubeStack-v0", 0, 40, (), (0.2, -0.3, 0.3, 0.1, 0.0, 0.2, -1.0)),
    ],
)
def test_halving_dt_and_doubling_decimation_keeps_rewards(task, begin, end, fixed, action):
    fine, _ = mean_reward(task, begin, end, fixed, action, halves=2)
    coarse, size = mean_reward(task, begin, end, fixed, action, halves=1)
    assert fine == pytest.approx(coarse, abs=0.01 * size)
