"""``Epo-A1-Parkour-v0``: what the engines do, against the specification's numbers, on both of them."""

import pytest
import torch

from support.parkour import goals_of, make_parkour, stand
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

NUM = 10
DEFAULT = {"hip": (0.1, -0.1), "thigh": (0.8, 1.0), "calf": (-1.5, -1.5)}


@pytest.fixture(scope="module", params=ENGINES)
def env(request):
    with make_parkour(request.param, num_envs=NUM) as env:
        yield env


def default_angles(robot) -> torch.Tensor:
    legs = [name.split("_") for name in robot.joint_names]
    return torch.tensor([DEFAULT[kind][int((leg[1] if kind == "hip" else leg[0]) == "R")] for leg, kind, _ in legs])


def yaw_roll_pitch(quat: torch.Tensor):
    x, y, z, w = quat.unbind(-1)
    yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    return yaw, roll, torch.asin((2 * (w * y - x * z)).clamp(-1.0, 1.0))


def wrapped(angle: torch.Tensor) -> torch.Tensor:
    return torch.atan2(angle.sin(), angle.cos())


def test_sizes(env):
    assert env.step_dt == pytest.approx(0.02) and env.max_episode_length == 1000
    assert env.observation_manager.group_obs_dim["policy"] == (214,)
    terms = dict(
        zip(
            env.observation_manager.active_terms["policy"],
            env.observation_manager.group_obs_term_dim["policy"],
            strict=True,
        )
    )
    assert terms["height_scan"] == (132,)
    assert env.action_manager.total_action_dim == 12
    assert len(env.reward_manager.active_terms) == 14


def test_robots_differ_as_specified_and_see_how(env):
    robot, trunk = env.scene["robot"], env.scene["robot"].body_names.index("trunk")
    env.reset()
    seen = env.observation_manager.compute()["policy"][:, 185:]
    mass = robot.data.body_mass.torch[:, trunk] - 4.713
    torch.testing.assert_close(seen[:, 0], mass, atol=2e-3, rtol=0)
    assert (mass > -1e-3).all() and (mass < 3.001).all() and mass.std() > 0.3
    shift = seen[:, 1:4]
    assert (shift.abs() <= 0.2).all() and (shift.std(dim=0) > 0.03).all()
    com = robot.data.body_com_pos_b.torch[:, trunk]
    torch.testing.assert_close(com - com[0], shift - shift[0], atol=1e-5, rtol=0)
    friction = seen[:, 4]
    assert (friction >= 0.6).all() and (friction <= 2.0).all() and friction.std() > 0.1
    strength = seen[:, 5:]
    assert strength.shape == (NUM, 24)
    assert (strength.abs() <= 0.2).all() and strength.std() > 0.08
    assert (strength[:, :12] - strength[:, 12:]).abs().mean() > 0.05, "stiffness and damping are drawn on their own"


def test_observation_is_the_specified_vector(env):
    env.reset()
    generator = torch.Generator().manual_seed(1)
    for _ in range(7):
        action = 2.0 * torch.rand(NUM, 12, generator=generator) - 1.0
        contacts = goals_of(env)._contact_before.clone()
        obs = env.step(action)[0]["policy"]
    robot, goals = env.scene["robot"], goals_of(env)
    alive = env.episode_length_buf == 7
    assert alive.sum() > 5
    _, roll, pitch = yaw_roll_pitch(robot.data.root_link_quat_w.torch)
    forces = env.scene["contact_forces"].data.net_forces_w.torch
    feet = [env.scene["contact_forces"].body_names.index(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR")]
    contact = (forces[:, feet].norm(dim=-1) > 2.0) | contacts
    column = torch.arange(NUM) % 5
    expected = torch.cat(
        [
            0.25 * robot.data.root_ang_vel_b.torch,
            torch.stack([roll, pitch], dim=-1),
            goals.seen_heading_errors,
            goals.speed.unsqueeze(-1),
            torch.stack([column != 2, column == 2], dim=-1).float(),
            robot.data.joint_pos.torch - default_angles(robot),
            0.05 * robot.data.joint_vel.torch,
            action,
            contact.float() - 0.5,
        ],
        dim=-1,
    )
    assert expected.shape[1] == 50
    torch.testing.assert_close(obs[alive, :50], expected[alive], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(obs[alive, 182:185], 2.0 * robot.data.root_lin_vel_b.torch[alive], atol=1e-4, rtol=1e-4)


def test_scan_is_a_grid_of_heights_ahead(env):
    """Right after a reset the robot looks along x, 0.42 m above its tile."""
    env.reset()
    scan = env.observation_manager.compute()["policy"][:, 50:182].reshape(NUM, 12, 11)
    origins, field = env.scene.env_origins, env.scene.terrain.height_field
    for i, j in ((0, 0), (3, 5), (11, 10), (11, 0)):
        point = origins[:, :2] + torch.tensor([-0.45 + 0.15 * i, -0.75 + 0.15 * j])
        torch.testing.assert_close(scan[:, i, j], 0.12 - field.surface(point), atol=2e-3, rtol=0)
    # roughness is at most 6 cm, and the platform goes on for 2.5 m
    assert (scan - 0.12).abs().max() < 0.065 and scan.std() > 0.01


def test_reward_terms_are_those_of_the_table(env):
    env.reset()
    robot, goals, sensor = env.scene["robot"], goals_of(env), env.scene["contact_forces"]
    generator = torch.Generator().manual_seed(2)
    actions = 3.0 * torch.rand(6, NUM, 12, generator=generator) - 1.5
    for action in actions[:-1]:
        env.step(action)
    velocity_before, torque_before = robot.data.joint_vel.torch.clone(), robot.actuators.applied_effort.torch.clone()
    goals.terrain.terrain_levels[:5] = 4
    contact_before = goals._contact_before.clone()
    reward = env.step(actions[-1])[1]
    goals.terrain.terrain_levels[:5] = 0
    alive = env.episode_length_buf == 6
    assert alive.sum() > 5
    terms = dict(zip(env.reward_manager.active_terms, env.reward_manager._step_reward.T, strict=True))

    position = robot.data.root_link_pos_w.torch[:, :2]
    way = goals.goals[:, 0, :2] - position
    unit = way / way.norm(dim=-1, keepdim=True)
    flat = torch.arange(NUM) % 5 == 2
    yaw, _, _ = yaw_roll_pitch(robot.data.root_link_quat_w.torch)
    forces, names = sensor.data.net_forces_w.torch, sensor.body_names
    others = [i for i, name in enumerate(names) if name == "trunk" or name.endswith(("thigh", "calf"))]
    feet = [names.index(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR")]
    assert len(others) == 9
    bodies = [robot.body_names.index(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR")]
    place_of_feet = robot.data.body_link_pos_w.torch[:, bodies, :2]
    contact = (forces[:, feet].norm(dim=-1) > 2.0) | contact_before
    away = robot.data.joint_pos.torch - default_angles(robot)
    hips = ["hip" in name for name in robot.joint_names]
    gravity, rate = robot.data.projected_gravity_b.torch, robot.data.root_ang_vel_b.torch
    torque = robot.actuators.applied_effort.torch
    towards = (robot.data.root_lin_vel_w.torch[:, :2] * unit).sum(-1)
    expected = {
        "goal_velocity": 1.5 * torch.minimum(towards, goals.speed) / (goals.speed + 1e-5),
        "heading": 0.5 * torch.exp(-wrapped(torch.atan2(way[:, 1], way[:, 0]) - yaw).abs()),
        "vertical_velocity": -(robot.data.root_lin_vel_b.torch[:, 2] ** 2) * (0.5 + 0.5 * flat),
        "roll_pitch_rate": -0.05 * (rate[:, 0] ** 2 + rate[:, 1] ** 2),
        "orientation": -(gravity[:, 0] ** 2 + gravity[:, 1] ** 2) * flat,
        "joint_acceleration": -2.5e-7 * ((robot.data.joint_vel.torch - velocity_before) / 0.02).pow(2).sum(-1),
        "collision": -10.0 * (forces[:, others].norm(dim=-1) > 0.1).sum(-1),
        "action_rate": -0.1 * (actions[-1] - actions[-2]).norm(dim=-1),
        "torque_change": -1e-7 * (torque - torque_before).pow(2).sum(-1),
        "torque": -1e-5 * torque.pow(2).sum(-1),
        "hip_posture": -0.5 * away[:, hips].pow(2).sum(-1),
        "posture": -0.04 * away.pow(2).sum(-1),
        "foot_stumble": -1.0 * (forces[:, feet, :2].norm(dim=-1) > 4 * forces[:, feet, 2].abs()).any(-1),
        "foot_edge": -1.0
        * (goals.terrain.height_field.at_edge(place_of_feet) & contact).sum(-1)
        * (torch.arange(NUM) < 5),
    }
    assert list(expected) == list(terms)
    for name, value in expected.items():
        torch.testing.assert_close(terms[name][alive], value[alive].float(), atol=1e-4, rtol=1e-3, msg=name)
    total = (0.02 * sum(expected.values())).clamp(min=0.0)
    torch.testing.assert_close(reward[alive], total[alive], atol=1e-5, rtol=1e-3)


def test_feet_stand_on_the_mesh(env):
    """The foot is a ball of 2 cm. With the centre of mass up to 0.2 m off, some robots tip over or lift legs."""
    env.reset()
    for _ in range(40):
        assert (stand(env)[1] >= 0.0).all(), "the reward is clipped at zero"
    alive = env.episode_length_buf == 40
    assert alive.sum() >= 7
    robot = env.scene["robot"]
    bodies, _ = robot.find_bodies(".*_foot")
    feet = robot.data.body_link_pos_w.torch[alive][:, bodies]
    clearance = feet[..., 2] - env.scene.terrain.height_field.surface(feet[..., :2])
    # on the flank of a bump the centre of the ball is nearer to the ground below it than its radius
    assert (clearance > 0.0).all()
    assert ((clearance - 0.02).abs() < 0.01).float().mean() > 0.6
