"""``Epo-A1-Flat-v0`` against the specification's numbers, on both engines."""

import math

import pytest
import torch

from epo_tasks.robots.unitree_a1 import FACTS
from support.envs import make_env
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

NUM = 16
DEFAULT = {"hip": (0.1, -0.1), "thigh": (0.8, 1.0), "calf": (-1.5, -1.5)}


@pytest.fixture(scope="module", params=ENGINES)
def env(request):
    with make_env("Epo-A1-Flat-v0", f"physics={request.param}", num_envs=NUM) as env:
        yield env


def default_angles(robot) -> torch.Tensor:
    angles = []
    for name in robot.joint_names:
        leg, kind, _ = name.split("_")
        angles.append(DEFAULT[kind][int(leg[1] == "R" if kind == "hip" else leg[0] == "R")])
    return torch.tensor(angles)


def stand(env, steps: int = 1) -> None:
    for _ in range(steps):
        env.step(torch.zeros(NUM, 12))


def test_timing_and_sizes(env):
    assert env.step_dt == pytest.approx(0.02)
    assert env.max_episode_length == 1000
    assert env.observation_manager.group_obs_dim["policy"] == (48,)
    assert env.action_manager.total_action_dim == 12


def test_only_the_trunks_differ_in_mass(env):
    robot = env.scene["robot"]
    trunk = robot.body_names.index("trunk")
    mass = robot.data.body_mass.torch[:, trunk]
    others = robot.data.body_mass.torch.sum(-1) - mass
    torch.testing.assert_close(others, torch.full((NUM,), 12.454 - 4.713), atol=2e-3, rtol=0)
    # log-uniform: a quarter more or a fifth less
    assert (mass > 4.713 / 1.25 - 1e-3).all() and (mass < 4.713 * 1.25 + 1e-3).all() and mass.std() > 0.2


def test_trunks_differ_in_their_centre_of_mass(env):
    robot = env.scene["robot"]
    trunk = robot.body_names.index("trunk")
    shift = robot.data.body_com_pos_b.torch[:, trunk] - torch.tensor(FACTS.link("trunk").com)
    assert (shift.abs() <= torch.tensor([0.05, 0.05, 0.01]) + 1e-5).all()
    assert (shift.std(dim=0) > torch.tensor([0.015, 0.015, 0.003])).all()


def test_feet_have_the_friction_of_isaac_labs_task(env):
    """Static 0.8 and dynamic 0.6 on PhysX, multiplied with the ground's 1; on Newton one number, the larger of both."""
    if "newton" in str(type(env.cfg.sim.physics)).lower():
        import warp as wp

        model = env.sim.physics_manager.get_model()
        friction = wp.to_torch(model.shape_material_mu)
        fixed = wp.to_torch(model.shape_body) < 0
        assert (friction[fixed] == 0.0).all()
        torch.testing.assert_close(friction[~fixed], torch.full_like(friction[~fixed], 0.8))
        return
    from isaaclab_ov import tensor_types

    materials = env.scene["robot"].root_view.get_attribute(tensor_types.SHAPE_FRICTION_AND_RESTITUTION)
    materials = torch.from_numpy(materials.numpy()).reshape(-1, 3)
    torch.testing.assert_close(materials, torch.tensor([0.8, 0.6, 0.0]).expand_as(materials))


def test_episode_begins_as_specified(env):
    env.reset()
    robot = env.scene["robot"]
    share = robot.data.joint_pos.torch / default_angles(robot)
    low, high = robot.data.soft_joint_pos_limits.torch.unbind(-1)
    at_limit = (robot.data.joint_pos.torch - low).abs().minimum((robot.data.joint_pos.torch - high).abs()) < 1e-4
    assert (((share > 0.5 - 1e-3) & (share < 1.5 + 1e-3)) | at_limit).all() and share.std() > 0.2
    assert (robot.data.joint_vel.torch.abs() < 1e-4).all()
    velocity = robot.data.root_com_vel_w.torch
    assert (velocity.abs() <= 0.5 + 0.05).all() and (velocity.std(dim=0) > 0.15).all()
    position = robot.data.root_link_pos_w.torch - env.scene.env_origins
    assert (position[:, :2].abs() <= 0.5).all() and position[:, :2].std() > 0.1
    torch.testing.assert_close(position[:, 2], torch.full((NUM,), 0.42), atol=1e-4, rtol=0)
    assert robot.data.heading_w.torch.std() > 0.5


def test_observation_is_the_specified_vector_within_its_noise(env):
    env.reset()
    action = 0.5 * torch.rand(NUM, 12, generator=torch.Generator().manual_seed(1))
    for _ in range(3):
        obs = env.step(action)[0]["policy"]
    robot = env.scene["robot"]
    x, y, z, w = robot.data.root_link_quat_w.torch.unbind(-1)
    gravity = -torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1)
    parts = (
        (robot.data.root_lin_vel_b.torch, 0.1),
        (robot.data.root_ang_vel_b.torch, 0.2),
        (gravity, 0.05),
        (env.command_manager.get_command("base_velocity"), 0.0),
        (robot.data.joint_pos.torch - default_angles(robot), 0.01),
        (robot.data.joint_vel.torch, 1.5),
        (action, 0.0),
    )
    difference = obs - torch.cat([value for value, _ in parts], dim=-1)
    begin = 0
    for value, noise in parts:
        block = difference[:, begin : begin + value.shape[-1]].abs()
        begin += value.shape[-1]
        assert (block <= noise + 1e-4).all()
        assert block.max() >= 0.7 * noise


def test_rewards_are_those_of_the_table(env):
    env.reset()
    generator = torch.Generator().manual_seed(2)
    actions = torch.rand(12, NUM, 12, generator=generator) - 0.5
    for action in actions:
        env.step(action)
    robot, command = env.scene["robot"], env.command_manager.get_term("base_velocity").vel_command_b
    command[:, :2] = robot.data.root_lin_vel_b.torch[:, :2] + torch.tensor([0.3, -0.4])
    command[:, 2] = robot.data.root_ang_vel_b.torch[:, 2] + 0.5
    velocity, rate = robot.data.root_lin_vel_b.torch, robot.data.root_ang_vel_b.torch
    tilt = robot.data.projected_gravity_b.torch[:, :2]
    penalties = (
        -2.0 * velocity[:, 2] ** 2
        - 0.05 * (rate[:, :2] ** 2).sum(-1)
        - 2.0e-4 * (robot.actuators.applied_effort.torch**2).sum(-1)
        - 2.5e-7 * (robot.data.joint_acc.torch**2).sum(-1)
        - 0.01 * ((actions[-1] - actions[-2]) ** 2).sum(-1)
        - 2.5 * (tilt**2).sum(-1)
    )
    sensor = env.scene["contact_forces"]
    feet = [index for index, name in enumerate(sensor.body_names) if name.endswith("foot")]
    assert len(feet) == 4
    landed = sensor.compute_first_contact(0.02).torch[:, feet]
    bonus = 0.25 * ((sensor.data.last_air_time.torch[:, feet] - 0.5) * landed).sum(-1)
    bonus *= command[:, :2].norm(dim=-1) > 0.1
    reward = env.reward_manager.compute(env.step_dt)
    expected = 0.02 * (2.25 * math.exp(-1.0) + penalties + bonus)
    torch.testing.assert_close(reward, expected, rtol=1e-3, atol=1e-5)

    # perfect tracking is worth 45 an episode
    command[:, :2], command[:, 2] = velocity[:, :2], rate[:, 2]
    tracking = [env.reward_manager.get_term_cfg(name) for name in ("track_lin_vel_xy", "track_ang_vel_z")]
    total = sum(1000 * 0.02 * term.weight * term.func(env, **term.params) for term in tracking)
    torch.testing.assert_close(total, torch.full((NUM,), 45.0))


def test_commands_change_every_ten_seconds_and_turn_to_the_heading(env):
    env.reset()
    term = env.command_manager.get_term("base_velocity")
    assert (term.time_left <= 10.0).all() and (term.time_left > 9.9).all()
    stand(env)
    moving = ~term.is_standing_env
    error = term.heading_target - env.scene["robot"].data.heading_w.torch
    error = torch.atan2(error.sin(), error.cos())
    expected = (0.5 * error).clamp(-1.0, 1.0)
    torch.testing.assert_close(term.command[moving, 2], expected[moving], atol=1e-4, rtol=0)
    assert (term.command[:, :2].abs() <= 1.0).all()


def test_standing_robots_keep_their_height_and_fallen_ones_end(env):
    """The weak gains of this task hold a trunk with 3 kg more somewhat lower than the stiff ones of parkour."""
    env.reset()
    robot = env.scene["robot"]
    robot.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    robot.write_joint_position_to_sim_index(position=robot.data.default_joint_pos.torch.clone())
    for _ in range(100):
        _, _, terminated, _, _ = env.step(torch.zeros(NUM, 12))
        assert not terminated.any()
    height = env.scene["robot"].data.root_link_pos_w.torch[:, 2]
    assert (height > 0.22).all() and (height < 0.32).all()

    pose = torch.cat([robot.data.root_link_pos_w.torch, robot.data.root_link_quat_w.torch], dim=-1)
    pose[:4, 2] = 0.3
    pose[:4, 3:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    robot.write_root_pose_to_sim_index(root_pose=pose)
    fallen = torch.zeros(NUM, dtype=torch.bool)
    for _ in range(25):
        fallen |= env.step(torch.zeros(NUM, 12))[2]
    assert fallen[:4].all() and not fallen[4:].any()
