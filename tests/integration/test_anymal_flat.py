"""``Epo-Anymal-Flat-v0`` against the specification's numbers, on both engines."""

import math

import pytest
import torch

from support.envs import make_env
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

TASK = "Epo-Anymal-Flat-v0"
DEFAULT = {"HAA": (0.03, -0.03), "HFE": (0.4, -0.4), "KFE": (-0.8, 0.8)}


@pytest.fixture(scope="module", params=ENGINES)
def env(request):
    with make_env(TASK, f"physics={request.param}", num_envs=32) as env:
        yield env


def default_angle(joint: str) -> float:
    leg, kind = joint.split("_")
    side = leg[0] == "R" if kind == "HAA" else leg[1] == "H"
    return DEFAULT[kind][int(side)]


def stand_still(env, steps: int = 1) -> torch.Tensor:
    for _ in range(steps):
        _, reward, *_ = env.step(torch.zeros(env.num_envs, 12))
    return reward


def test_timing_and_sizes(env):
    assert env.step_dt == pytest.approx(0.02)
    assert env.max_episode_length == 2500
    assert env.observation_manager.group_obs_dim["policy"] == (48,)
    assert env.action_manager.total_action_dim == 12


def test_episode_begins_as_specified(env):
    env.reset()
    robot = env.scene["robot"]
    factor = robot.data.joint_pos.torch / torch.tensor([default_angle(name) for name in robot.joint_names])
    assert (factor > 0.499).all() and (factor < 1.501).all()
    assert factor.std() > 0.2, "every joint is drawn anew"
    velocity = robot.data.joint_vel.torch
    assert (velocity.abs() <= 0.1001).all() and velocity.std() > 0.03
    position = robot.data.root_link_pos_w.torch - env.scene.env_origins
    torch.testing.assert_close(position, torch.tensor([0.0, 0.0, 0.62]).expand_as(position), atol=1e-4, rtol=0)
    identity = torch.tensor([0.0, 0.0, 0.0, 1.0])
    torch.testing.assert_close(robot.data.root_link_quat_w.torch.abs(), identity.expand(32, 4), atol=1e-4, rtol=0)
    assert (robot.data.root_com_vel_w.torch.abs() < 1e-4).all()


def test_observation_is_the_specified_vector(env):
    env.reset()
    generator = torch.Generator().manual_seed(1)
    for _ in range(5):
        action = 4.0 * torch.rand(32, 12, generator=generator) - 2.0
        obs = env.step(action)[0]["policy"]
    robot = env.scene["robot"]
    default = torch.tensor([default_angle(name) for name in robot.joint_names])
    quat = robot.data.root_link_quat_w.torch
    x, y, z, w = quat.unbind(-1)
    gravity = -torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1)
    expected = torch.cat(
        [
            2.0 * robot.data.root_lin_vel_b.torch,
            0.25 * robot.data.root_ang_vel_b.torch,
            gravity,
            env.command_manager.get_command("base_velocity") * torch.tensor([2.0, 2.0, 0.25]),
            robot.data.joint_pos.torch - default,
            0.05 * robot.data.joint_vel.torch,
            action.clamp(-1.0, 1.0),
        ],
        dim=-1,
    ).clamp(-5.0, 5.0)
    alive = env.episode_length_buf == 5
    assert alive.sum() > 20
    torch.testing.assert_close(obs[alive], expected[alive], atol=1e-4, rtol=1e-4)


def test_actions_are_clipped_targets_around_the_default_pose(env):
    env.reset()
    action = torch.zeros(32, 12)
    action[0], action[1], action[2] = 10.0, -10.0, 0.3
    env.step(action)
    default = torch.tensor([default_angle(name) for name in env.scene["robot"].joint_names])
    targets = env.action_manager.get_term("joint_pos").processed_actions
    for row, offset in ((0, 0.5), (1, -0.5), (2, 0.15)):
        torch.testing.assert_close(targets[row], default + offset)


def test_perfect_tracking_sums_to_75(env):
    env.reset()
    stand_still(env, 3)
    robot, command = env.scene["robot"], env.command_manager.get_term("base_velocity").vel_command_b
    torques = (robot.actuators.applied_effort.torch**2).sum(-1)
    command[:, :2] = robot.data.root_lin_vel_b.torch[:, :2]
    command[:, 2] = robot.data.root_ang_vel_b.torch[:, 2]
    reward = env.reward_manager.compute(env.step_dt)
    torch.testing.assert_close(2500 * (reward + 0.02 * 2.5e-5 * torques), torch.full((32,), 75.0), rtol=1e-5, atol=0)

    # half a metre a second off, and half a radian a second
    command[:, 0] += 0.3
    command[:, 1] -= 0.4
    command[:, 2] += 0.5
    reward = env.reward_manager.compute(env.step_dt)
    expected = 0.02 * (1.5 * math.exp(-1.0) - 2.5e-5 * torques)
    torch.testing.assert_close(reward, expected.clamp(min=0.0), rtol=1e-4, atol=1e-7)


def test_total_is_clipped_at_zero_and_terms_are_not(env):
    env.reset()
    stand_still(env, 2)
    term = env.reward_manager.get_term_cfg("joint_torques")
    term.weight = -1.0
    try:
        reward = stand_still(env)
        assert (reward == 0.0).all()
        assert (env.reward_manager._episode_sums["joint_torques"] < -0.1).all()
    finally:
        term.weight = -2.5e-5


def test_command_is_constant_within_an_episode_and_in_range(env):
    env.reset()
    before = env.command_manager.get_command("base_velocity").clone()
    stand_still(env, 15)
    alive = env.episode_length_buf == 15
    assert alive.any()
    torch.testing.assert_close(env.command_manager.get_command("base_velocity")[alive], before[alive])
    assert (before.abs() <= torch.tensor([2.0, 1.0, 1.0])).all()
    assert (before.abs().max(dim=0).values > torch.tensor([1.5, 0.75, 0.75])).all()


def test_a_robot_on_its_back_has_fallen(env):
    env.reset()
    robot = env.scene["robot"]
    pose = torch.cat([robot.data.root_link_pos_w.torch, robot.data.root_link_quat_w.torch], dim=-1)
    pose[:4, 2] = 0.3
    pose[:4, 3:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    robot.write_root_pose_to_sim_index(root_pose=pose)
    fallen = torch.zeros(32, dtype=torch.bool)
    for _ in range(20):
        _, _, terminated, truncated, _ = env.step(torch.zeros(32, 12))
        fallen |= terminated
        assert not truncated.any()
    assert fallen[:4].all() and not fallen[4:].any()


def test_the_end_of_time_is_a_truncation(env):
    env.reset()
    env.episode_length_buf[4:8] = env.max_episode_length - 1
    _, _, terminated, truncated, _ = env.step(torch.zeros(32, 12))
    assert truncated[4:8].all() and truncated.sum() == 4
    assert not terminated.any()


def test_standing_is_no_fall(env):
    """Fifty steps in the default pose; hips, shanks and feet may touch the ground."""
    env.reset()
    falls = torch.zeros(32, dtype=torch.bool)
    for _ in range(50):
        falls |= env.step(torch.zeros(32, 12))[2]
    assert not falls.any()


def test_return_of_whole_episodes_is_logged_and_of_others_not(env):
    env.reset()
    total = torch.zeros(32)
    for _ in range(10):
        total += stand_still(env)
    # the clock of these is set forward, as runners do to spread the first resets
    env.episode_length_buf[:2] = env.max_episode_length - 1
    extras = env.step(torch.zeros(32, 12))[4]
    assert "Metrics/episode_return" not in extras["log"]
    total += env.reward_buf
    env.reward_manager._episode_steps[2:4] = env.max_episode_length - 1
    env.episode_length_buf[2:4] = env.max_episode_length - 1
    extras = env.step(torch.zeros(32, 12))[4]
    total += env.reward_buf
    assert float(extras["log"]["Metrics/episode_return"]) == pytest.approx(total[2:4].mean().item(), rel=1e-4)
    extras = env.step(torch.zeros(32, 12))[4]
    assert "log" not in extras, "nothing ended in this step"
