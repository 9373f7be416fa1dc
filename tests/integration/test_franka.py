"""The Franka cube tasks against the specification's numbers, both tasks on both engines."""

import math

import pytest
import torch
from isaaclab.utils.math import quat_apply, quat_conjugate, quat_mul

from epo_tasks.robots.franka_panda import ARM_JOINTS, FACTS
from support.constants import on_physx
from support.envs import make_env
from support.franka import PUSH, STACK, go_home, goal_of, put
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

NUM = 8
OTHER = {PUSH: (1.05, 0.14142), STACK: (1.06, 0.16970)}
"""Height of the goal or of the other cube, and its least distance from the cube at the start [m]."""


@pytest.fixture(scope="module", params=[(task, engine) for task in OTHER for engine in ENGINES], ids="-".join)
def world(request):
    task, engine = request.param
    with make_env(task, f"physics={engine}", num_envs=NUM) as env:
        yield task, env


def look(env) -> torch.Tensor:
    return env.observation_manager.compute()["policy"]


def test_timing_and_sizes(world):
    _, env = world
    assert env.step_dt == pytest.approx(1 / 60)
    assert env.max_episode_length == 299
    assert env.observation_manager.group_obs_dim["policy"] == (19,)
    assert env.action_manager.total_action_dim == 7


def test_episode_begins_as_specified(world):
    task, env = world
    height, least = OTHER[task]
    robot, goal = env.scene["robot"], goal_of(env)
    turns = []
    for _ in range(6):
        env.reset()
        for position, z in ((goal.cube_pos, 1.05), (goal.goal_pos, height)):
            assert (position[:, :2].abs() <= 0.25 + 1e-5).all()
            torch.testing.assert_close(position[:, 2], torch.full((NUM,), z), atol=1e-4, rtol=0)
        assert ((goal.cube_pos - goal.goal_pos)[:, :2].norm(dim=-1) >= least - 1e-5).all()
        x, y, z, w = goal.cube.data.root_link_quat_w.torch.unbind(-1)
        turns.append(2.0 * torch.atan2(z, w))
        assert (x.abs() < 1e-5).all() and (y.abs() < 1e-5).all()
        offset = robot.data.joint_pos.torch - robot.data.default_joint_pos.torch
        assert (offset[:, :7].abs() <= 0.25 + 1e-5).all() and offset[:, :7].std() > 0.1
        torch.testing.assert_close(robot.data.joint_pos.torch[:, 7:], torch.full((NUM, 2), 0.035))
        assert (robot.data.joint_vel.torch.abs() < 1e-5).all()
        assert (goal.cube.data.root_com_vel_w.torch.abs() < 1e-4).all()
    turns = torch.cat(turns)
    assert (turns.abs() <= 0.785 + 1e-4).all() and turns.std() > 0.35


def test_hand_and_fingertips_are_where_the_facts_have_them(world):
    _, env = world
    go_home(env)
    expected = FACTS.extras["fk_checks"]["task_default"]
    points = torch.tensor([expected[name] for name in ("grip_site", "leftfinger_tip", "rightfinger_tip")])
    torch.testing.assert_close(goal_of(env).hand.points(), points.expand(NUM, 3, 3), atol=1e-3, rtol=0)


def test_observation_shows_the_present_state_right_after_a_reset(world):
    """From the joint angles by the facts' own kinematics, so that a hand of the last episode would be seen."""
    _, env = world
    for _ in range(3):
        env.step(torch.full((NUM, 7), 0.7))
    env.end_episodes(torch.arange(NUM))
    obs = env.step(torch.zeros(NUM, 7))[0]["policy"]
    robot, goal = env.scene["robot"], goal_of(env)
    for row in range(NUM):
        angles = dict(zip(robot.joint_names, robot.data.joint_pos.torch[row].tolist(), strict=True))
        rotation, position = FACTS.link_poses(angles)["panda_hand"]
        grip = position + rotation @ [0.0, 0.0, 0.1025] + FACTS.extras["default_root_pos"]
        assert obs[row, 10:13].tolist() == pytest.approx(grip.tolist(), abs=1e-3)
        # the hand's z axis, from the observed quaternion
        axis = quat_apply(obs[row : row + 1, 13:17], torch.tensor([[0.0, 0.0, 1.0]]))[0]
        assert axis.tolist() == pytest.approx(rotation[:, 2].tolist(), abs=1e-3)
    torch.testing.assert_close(obs[:, 4:7], goal.cube_pos, atol=1e-5, rtol=0)
    torch.testing.assert_close(obs[:, 7:10] + obs[:, 4:7], goal.goal_pos, atol=1e-5, rtol=0)
    torch.testing.assert_close(obs[:, 17:], torch.full((NUM, 2), 0.035))
    for quat, positive in ((obs[:, 0:4], 3), (obs[:, 13:17], 0)):
        torch.testing.assert_close(quat.norm(dim=-1), torch.ones(NUM), atol=1e-4, rtol=0)
        assert (quat[:, positive] >= 0.0).all()


def test_observation_does_not_depend_on_where_an_environment_stands(world):
    _, env = world
    env.reset()
    go_home(env)
    put(env, "cube", torch.tensor([0.1, -0.05, 1.05]).expand(NUM, 3))
    obs = look(env)
    keep = [*range(7), *range(10, 19)]
    torch.testing.assert_close(obs[:, keep], obs[:1, keep].expand(NUM, -1), atol=1e-5, rtol=0)


def test_half_an_action_moves_the_hand_by_68_millimetres_in_15_steps(world):
    """Environments 0, 1 and 2 along x, y and -z; 3 to 5 the other way."""
    _, env = world
    env.reset()
    go_home(env)
    put(env, "cube", torch.tensor([0.24, 0.24, 1.05]).expand(NUM, 3))
    hand = goal_of(env).hand
    action = torch.zeros(NUM, 7)
    axes, signs = [0, 1, 2, 0, 1], [1.0, 1.0, -1.0, -1.0, -1.0]
    for row, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
        action[row, axis] = 0.5 * sign
    start, quat = (value.clone() for value in hand.pose())
    env.step(action)
    # at rest the first step's acceleration is 150 x 0.1 x 0.5 = 7.5 m/s^2
    arm = env.action_manager.get_term("arm")
    expected = [0.5 * value for value in FACTS.extras["dynamics_checks"]["osc_torque"]["x"]]
    assert arm.processed_actions[0].tolist() == pytest.approx(expected, rel=0.01, abs=0.05)
    speeds = env.scene["robot"].data.joint_vel.torch[:, : len(ARM_JOINTS)].unsqueeze(-1)
    acceleration = 60 * (arm.jacobian()[:, :3] @ speeds).squeeze(-1)
    torch.testing.assert_close(acceleration[:5], 15.0 * action[:5, :3], atol=0.2, rtol=0)
    for _ in range(13):
        env.step(action)
    last = hand.pose()[0].clone()
    env.step(action)
    moved = hand.pose()[0] - start
    for row, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
        assert sign * moved[row, axis].item() == pytest.approx(0.068, rel=0.05)
        assert 60 * sign * (hand.pose()[0] - last)[row, axis].item() == pytest.approx(0.305, rel=0.03)
        across = [moved[row, other].abs().item() for other in range(3) if other != axis]
        assert max(across) < 0.002
    turned = 2.0 * quat_mul(hand.pose()[1], quat_conjugate(quat))[:5, :3].norm(dim=-1).asin()
    assert (turned < math.radians(1.0)).all()
    assert (moved[5:].norm(dim=-1) < 1e-3).all(), "no action, no motion"


def test_rotations_turn_about_the_axes_of_the_environment(world):
    _, env = world
    env.reset()
    go_home(env)
    hand = goal_of(env).hand
    before = hand.pose()[1].clone()
    action = torch.zeros(NUM, 7)
    for axis in range(3):
        action[axis, 3 + axis] = 0.2
    for _ in range(10):
        env.step(action)
    turn = 2.0 * quat_mul(hand.pose()[1], quat_conjugate(before))[:3, :3].abs()
    # 10 steps of 0.2: steady speed 0.61 rad/s, time constant 41 ms
    expected = 0.2 * 0.5 * 150 / 24.495 * (10 / 60 - (1 - math.exp(-10 / 60 / 0.0408)) / 24.495)
    assert turn.diag().tolist() == pytest.approx([expected] * 3, rel=0.1)
    assert (turn - turn.diag().diag()).abs().max() < 0.01


def test_torques_never_exceed_the_motors(world):
    _, env = world
    env.reset()
    arm = env.action_manager.get_term("arm")
    limit = torch.tensor([87.0] * 4 + [12.0] * 3)
    for _ in range(5):
        env.step(torch.where(torch.rand(NUM, 7) < 0.5, -30.0, 30.0))
        assert (arm.processed_actions.abs() <= limit).all()
    # actions beyond 1 count as 1
    robot = env.scene["robot"]
    position, velocity = robot.data.joint_pos.torch.clone(), robot.data.joint_vel.torch.clone()
    torques = []
    for size in (1.0, 9.0):
        arm.process_actions(torch.full((NUM, 6), size))
        torques.append(arm.processed_actions.clone())
    torch.testing.assert_close(*torques)
    assert torch.isfinite(position).all() and torch.isfinite(velocity).all()


@pytest.mark.parametrize(("action", "target"), [(0.0, 0.04), (1.0, 0.04), (-0.01, 0.0), (-1.0, 0.0)])
def test_gripper_opens_from_zero_on_and_needs_its_time(world, action, target):
    _, env = world
    env.reset()
    go_home(env)
    put(env, "cube", torch.tensor([0.24, 0.24, 1.05]).expand(NUM, 3))
    gripper, hand = env.action_manager.get_term("gripper"), goal_of(env).hand
    actions = torch.zeros(NUM, 7)
    actions[:, 6] = action
    travel = abs(target - 0.035)
    env.step(actions)
    if on_physx(env):
        torch.testing.assert_close(gripper.processed_actions, torch.full((NUM, 2), target))
    else:
        moved = (gripper.processed_actions - 0.035).abs()
        assert (moved <= 0.2 / 60 + 1e-6).all(), "Newton knows no speed limit of joints; targets have one"
    # half the time at 0.2 m/s is not enough, twice the time and a little is
    for _ in range(int(0.5 * travel / 0.2 * 60)):
        env.step(actions)
    if travel > 0.01:
        assert ((hand.fingers() - target).abs() > 0.005).all()
    for _ in range(int(2.0 * travel / 0.2 * 60) + 6):
        env.step(actions)
    torch.testing.assert_close(hand.fingers(), torch.full((NUM, 2), target), atol=1e-3, rtol=0)


def test_cubes_lie_still_on_the_table(world):
    task, env = world
    env.reset()
    for _ in range(60):
        env.step(torch.zeros(NUM, 7))
    cubes = {"cube": (1.05, 0.125)} | ({"base_cube": (1.06, 0.343)} if task == STACK else {})
    # a hand that starts low may touch a cube as its fingers open
    for name, (height, mass) in cubes.items():
        data = env.scene[name].data
        torch.testing.assert_close(data.body_mass.torch.flatten(), torch.full((NUM,), mass))
        z = data.root_link_pos_w.torch[:, 2] - env.scene.env_origins[:, 2]
        assert ((z - height).abs() < 0.001).float().mean() >= 0.8, z
        assert (data.root_com_vel_w.torch[:, :3].norm(dim=-1) < 1e-3).float().mean() >= 0.8


def test_the_engines_mass_matrix_and_jacobian_are_those_of_the_facts(world):
    _, env = world
    env.reset()
    go_home(env)
    checks, robot = FACTS.extras["dynamics_checks"], env.scene["robot"]
    arm = env.action_manager.get_term("arm")
    expected = torch.tensor(checks["mass_matrix"])
    torch.testing.assert_close(arm.mass_matrix(), expected.expand(NUM, 7, 7), rtol=0.01, atol=1e-3)
    row = robot.body_names.index("panda_hand") - 1
    jacobian = robot.data.body_link_jacobian_w.torch[:, row, :, : len(ARM_JOINTS)]
    torch.testing.assert_close(jacobian, torch.tensor(checks["hand_jacobian"]).expand(NUM, 6, 7), rtol=0.01, atol=1e-3)


def test_the_grip_sites_jacobian_tells_its_velocity(world):
    """By finite differences: a nudge of each joint and where it brings the grip site."""
    _, env = world
    env.reset()
    go_home(env)
    robot, arm, hand = env.scene["robot"], env.action_manager.get_term("arm"), goal_of(env).hand
    jacobian, start = arm.jacobian()[0].clone(), hand.pose()[0].clone()
    position = robot.data.default_joint_pos.torch.clone()
    nudge = 1e-3
    for joint in range(7):
        position[joint, joint] += nudge
    robot.write_joint_position_to_sim_index(position=position)
    env.sim.forward()
    env.scene.update(0.0)
    columns = ((hand.pose()[0] - start)[:7] / nudge).T
    torch.testing.assert_close(jacobian[:3], columns, atol=3e-3, rtol=0)
