"""``Epo-Humanoid-Stand-v0`` and ``-Walk-v0`` against dm_control: same state in, same reward and observation out."""

import numpy as np
import pytest
import torch
from isaaclab.utils.math import quat_apply

from epo_tasks.humanoid.mdp import rewards
from support.constants import on_physx
from support.control_suite import load, look
from support.envs import make_env

pytestmark = pytest.mark.integration

NUM = 16
SPEEDS = {"stand": 0.0, "walk": 1.0, "run": 10.0}


def test_walking_is_paid_by_the_step():
    with make_env("Epo-Humanoid-Walk-v0", "physics=ovphysx", num_envs=4) as env:
        env.step(torch.zeros(4, 21))
        _, reward, *_ = env.step(torch.full((4, 21), 0.5))
        torch.testing.assert_close(reward, rewards.dmc_reward(env, 1.0), atol=1e-5, rtol=1e-4)


@pytest.fixture(scope="module", params=["ovphysx", "newton_mjwarp"])
def world(request):
    with make_env("Epo-Humanoid-Stand-v0", f"physics={request.param}", num_envs=NUM) as env:
        yield env


def put(env) -> dict[str, torch.Tensor]:
    """Put the humanoids into states of all kinds, half of them nearly upright, and return these."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    robot = env.scene["robot"]
    quat = torch.tensor([0.0, 0.0, 0.0, 1.0]) + torch.linspace(0.05, 1.0, NUM).unsqueeze(1) * normal(NUM, 4)
    quat = torch.nn.functional.normalize(quat, dim=-1)
    height = 1.5 - 0.4 * torch.rand(NUM, generator=generator)
    low, high = robot.data.joint_pos_limits.torch.unbind(-1)
    state = {
        "position": torch.stack([0.3 * normal(NUM), 0.3 * normal(NUM), height], dim=-1),
        "quat": quat,
        "linear": normal(NUM, 3),
        "angular": normal(NUM, 3),
        "joints": low + (high - low) * torch.rand(NUM, 21, generator=generator),
        "joint_speeds": 2.0 * normal(NUM, 21),
        "action": (2.0 * torch.rand(NUM, 21, generator=generator) - 1.0) * torch.linspace(0.1, 1.0, NUM).unsqueeze(1),
    }
    pose = torch.cat([state["position"] + env.scene.env_origins, quat], dim=1)
    robot.write_root_pose_to_sim_index(root_pose=pose)
    robot.write_joint_position_to_sim_index(position=state["joints"])
    # ours is the velocity of the torso's frame, with the spin in world axes
    velocity = torch.cat([state["linear"], quat_apply(quat, state["angular"])], dim=1)
    robot.write_root_link_velocity_to_sim_index(root_velocity=velocity)
    robot.write_joint_velocity_to_sim_index(velocity=state["joint_speeds"])
    env.action_manager.process_action(state["action"])
    env.sim.forward()
    env.scene.update(0.0)
    return state


def test_the_same_state_gives_the_same_observation_and_reward(world):
    env = world
    state = {name: value.numpy().astype(float) for name, value in put(env).items()}
    obs = env.observation_manager.compute()["policy"]
    assert obs.shape == (NUM, 67)
    for task, speed in SPEEDS.items():
        suite = load(task)
        physics = suite.physics
        reward = rewards.dmc_reward(env, speed)
        expected = []
        for row in range(NUM):
            with physics.reset_context():
                physics.data.qpos[:] = np.concatenate(
                    [state["position"][row], state["quat"][row, [3, 0, 1, 2]], state["joints"][row]]
                )
                physics.data.qvel[:] = np.concatenate(
                    [state["linear"][row], state["angular"][row], state["joint_speeds"][row]]
                )
            physics.set_control(state["action"][row])
            physics.forward()
            expected.append(suite.task.get_reward(physics))
            if task == "stand":
                np.testing.assert_allclose(obs[row], look(suite), atol=5e-3, err_msg=f"state {row}")
        np.testing.assert_allclose(reward, expected, atol=2e-3, err_msg=task)
        assert max(expected) > 0.1 and np.std(expected) > 0.01, "states that tell something"


def test_episodes_begin_anyhow_in_the_air_and_last_1000_steps_whatever_happens(world):
    env = world
    env.reset()
    robot = env.scene["robot"]
    height = (robot.data.root_link_pos_w.torch - env.scene.env_origins)[:, 2]
    torch.testing.assert_close(height, torch.full((NUM,), 1.5), atol=1e-3, rtol=0)
    assert robot.data.root_link_quat_w.torch.std(dim=0).min() > 0.2
    assert (robot.data.joint_vel.torch.abs() < 1e-4).all()
    assert env.max_episode_length == 1000 and env.step_dt == pytest.approx(0.025)
    # Newton takes its time for what lies on the ground
    steps = 40 if on_physx(env) else 3
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(torch.zeros(NUM, 21))
        assert (reward >= 0.0).all() and (reward <= 1.0).all()
        assert not terminated.any() and not truncated.any()
    if on_physx(env):
        assert (robot.data.root_link_pos_w.torch[:, 2] < 0.6).float().mean() > 0.5, "it lies on the ground, and goes on"
    env.episode_length_buf[:] = 999
    _, _, terminated, truncated, _ = env.step(torch.zeros(NUM, 21))
    assert truncated.all() and not terminated.any()
