"""A robot with a non-finite velocity on the real engine: only it is affected, it is named, and a reset heals it."""

import math

import pytest
import torch

from epo_lab.runner.guard import GuardedEnv
from support.envs import make_env

pytestmark = pytest.mark.integration


def test_a_broken_robot_is_reset_and_its_neighbours_notice_nothing():
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    with make_env("Epo-Anymal-Flat-v0", num_envs=8) as env, torch.inference_mode():
        guarded = GuardedEnv(RslRlVecEnvWrapper(env))
        actions = torch.zeros(8, 12)
        for _ in range(3):
            guarded.step(actions)
        velocity = torch.zeros(1, 6)
        velocity[0, 0] = math.nan
        robot = env.unwrapped.scene["robot"]
        robot.write_root_velocity_to_sim_index(root_velocity=velocity, env_ids=torch.tensor([2], dtype=torch.int32))
        for _ in range(4):
            obs, rewards, dones, _ = guarded.step(actions)
            assert bool(obs["policy"].isfinite().all())
            assert bool(rewards.isfinite().all())
            assert dones.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
        assert not bool(env.unwrapped.observation_manager.compute()["policy"].isfinite().all())
        assert "observation policy/base_lin_vel" in guarded._terms()
        guarded.end_iteration(0, None)
        assert guarded.reset_count == 1
        for _ in range(10):
            _, _, dones, _ = guarded.step(actions)
            assert not bool(dones.any())
        guarded.end_iteration(1, None)
        assert guarded.reset_count == 1
        assert bool(env.unwrapped.observation_manager.compute()["policy"].isfinite().all())
