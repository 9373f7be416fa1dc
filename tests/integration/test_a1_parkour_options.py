"""``Epo-A1-Parkour-v0`` with late joint targets and with a history."""

import pytest
import torch

from support.parkour import make_parkour

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NUM = 5


@pytest.fixture(scope="module")
def env():
    options = ("env.action_delay_steps=1", "env.observe_history=true")
    with make_parkour("ovphysx", *options, "env.events.push=null", num_envs=NUM) as env:
        yield env


def test_joint_targets_come_one_policy_step_late(env):
    env.reset()
    for _ in range(2):
        env.step(torch.zeros(NUM, 12))
    robot = env.scene["robot"]
    strength = env.event_manager.get_term_cfg("motor_strength").func.strength
    assert strength.std() > 0.01, "the delayed motors are of random strength, too"
    kp, kd = 40.0 * strength[:, :12], 1.0 * strength[:, 12:]
    default = robot.data.default_joint_pos.torch
    env.action_manager.process_action(torch.full((NUM, 12), 0.4))
    for substep in range(8):
        env.action_manager.apply_action()
        env.scene.write_data_to_sim()
        target = default + (0.1 if substep >= 4 else 0.0)
        torque = kp * (target - robot.data.joint_pos.torch) - kd * robot.data.joint_vel.torch
        applied = robot.data.applied_torque.torch
        unclipped = applied.abs() < 19.9
        assert unclipped.float().mean() > 0.5
        torch.testing.assert_close(applied[unclipped], torque[unclipped], atol=1e-2, rtol=1e-3)
        env.sim.step(render=False)
        env.scene.update(env.physics_dt)


def test_history_holds_ten_steps_the_last_one_last(env):
    obs, _ = env.reset()
    assert obs["history"].shape == (NUM, 530)
    for step in range(12):
        obs, *_ = env.step(torch.full((NUM, 12), 0.01 * step))
    names = env.observation_manager.active_terms["history"]
    sizes = [shape[0] for shape in env.observation_manager.group_obs_term_dim["history"]]
    parts = dict(zip(names, obs["history"].split(sizes, dim=-1), strict=True))
    expected = 0.01 * torch.arange(2, 12).repeat_interleave(12).expand(NUM, -1)
    torch.testing.assert_close(parts["actions"], expected)
    assert (parts["heading_errors"] == 0).all() and (parts["empty"] == 0).all()
    robot = env.scene["robot"]
    angles = robot.data.joint_pos.torch - robot.data.default_joint_pos.torch
    torch.testing.assert_close(parts["joint_pos"][:, -12:], angles)
