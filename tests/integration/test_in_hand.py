"""The in-hand tasks against the specification's numbers, both hands on both engines."""

import pytest
import torch
from isaaclab_ov.physics import OvPhysxCfg

from support.envs import make_env
from support.in_hand import HANDS, angle_between, goal_of, hold, limits, place_cube, rotation
from support.simulate import ENGINES, aim, set_joints

pytestmark = pytest.mark.integration

NUM = 16


@pytest.fixture(scope="module", params=[(name, engine) for name in HANDS for engine in ENGINES], ids="-".join)
def world(request):
    name, engine = request.param
    with make_env(HANDS[name].task, f"physics={engine}", num_envs=NUM) as env:
        yield env, HANDS[name]


def paid(env) -> dict[str, torch.Tensor]:
    """Return what each reward term paid in the last step."""
    amounts = env.reward_manager._step_reward * env.step_dt
    return {name: amounts[:, index] for index, name in enumerate(env.reward_manager.active_terms)}


def test_timing_and_sizes(world):
    env, hand = world
    assert env.step_dt == pytest.approx(hand.step_dt)
    assert env.max_episode_length == 600
    assert env.observation_manager.group_obs_dim["policy"] == (hand.size,)
    assert env.action_manager.total_action_dim == len(hand.motors)


def test_episode_begins_as_specified(world):
    env, hand = world
    env.reset()
    robot, cube, goal = env.scene["robot"], env.scene["object"], goal_of(env)
    offset = cube.data.root_link_pos_w.torch - env.scene.env_origins - torch.tensor(hand.start)
    assert (offset.abs() <= 0.01 + 1e-5).all() and offset.std() > 0.003
    assert (cube.data.root_com_vel_w.torch.abs() < 1e-4).all()
    torch.testing.assert_close(cube.data.body_mass.torch.flatten(), torch.full((NUM,), hand.mass), rtol=1e-4, atol=0)
    lowered = torch.tensor(hand.start) - torch.tensor([0.0, 0.0, 0.04])
    torch.testing.assert_close(goal.goal_pos, lowered.expand(NUM, 3), atol=1e-5, rtol=0)
    for quat in (cube.data.root_link_quat_w.torch, goal.goal_quat):
        x, y, z, w = quat.unbind(-1)
        # what turns about x and y leave out of all rotations
        torch.testing.assert_close(x * y, z * w, atol=1e-4, rtol=0)
        torch.testing.assert_close(quat.norm(dim=-1), torch.ones(NUM))
        assert (quat.std(dim=0) > 0.2).all()
    low, high = limits(hand, robot.joint_names)
    rest = torch.tensor([0.28 if name == "thumb_joint_0" else 0.0 for name in robot.joint_names])
    share = (robot.data.joint_pos.torch - rest) / 0.2
    assert (share >= low - rest - 1e-3).all() and (share <= high - rest + 1e-3).all()
    assert ((share - low + rest) / (high - low)).std() > 0.25, "the whole range is drawn from"
    torch.testing.assert_close(robot.data.joint_pos_target.torch, robot.data.joint_pos.torch, atol=1e-5, rtol=0)
    assert (robot.data.joint_vel.torch.abs() < 1e-5).all()


def test_actions_are_targets_from_limit_to_limit(world):
    env, hand = world
    env.reset()
    action = torch.zeros(NUM, len(hand.motors))
    action[0], action[1], action[2] = 10.0, -10.0, 0.5
    env.step(action)
    robot, (low, high) = env.scene["robot"], limits(hand, hand.motors)
    targets = robot.data.joint_pos_target.torch[:, [robot.joint_names.index(name) for name in hand.motors]]
    for row, expected in ((0, high), (1, low), (2, 0.25 * low + 0.75 * high), (3, 0.5 * (low + high))):
        torch.testing.assert_close(targets[row], expected, atol=1e-5, rtol=0)


def test_observation_is_the_specified_vector(world):
    env, hand = world
    env.reset()
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        action = 4.0 * torch.rand(NUM, len(hand.motors), generator=generator) - 2.0
        obs = env.step(action)[0]["policy"]
    robot, cube, goal = env.scene["robot"], env.scene["object"], goal_of(env)
    low, high = limits(hand, robot.joint_names)
    origins = env.scene.env_origins
    blocks = [(2.0 * robot.data.joint_pos.torch - high - low) / (high - low), 0.2 * robot.data.joint_vel.torch]
    tips = [robot.body_names.index(name) for name in hand.fingertips]
    poses = [robot.data.body_link_pose_w.torch[:, tip].clone() for tip in tips]
    for pose in poses:
        pose[:, :3] -= origins
    blocks += [*poses, *(robot.data.body_com_vel_w.torch[:, tip] for tip in tips)]
    qx, qy, qz, qw = cube.data.root_link_quat_w.torch.unbind(-1)
    gx, gy, gz, gw = goal.goal_quat.unbind(-1)
    # q_object * conj(q_goal), written out
    difference = torch.stack(
        [
            -qw * gx + qx * gw - qy * gz + qz * gy,
            -qw * gy + qx * gz + qy * gw - qz * gx,
            -qw * gz - qx * gy + qy * gx + qz * gw,
            qw * gw + qx * gx + qy * gy + qz * gz,
        ],
        dim=-1,
    )
    blocks += [
        cube.data.root_link_pos_w.torch - origins,
        cube.data.root_link_quat_w.torch,
        cube.data.root_com_vel_w.torch[:, :3],
        0.2 * cube.data.root_com_vel_w.torch[:, 3:],
        (torch.tensor(hand.start) - torch.tensor([0.0, 0.0, 0.04])).expand(NUM, 3),
        goal.goal_quat,
        difference,
        action.clamp(-1.0, 1.0),
    ]
    expected = torch.cat(blocks, dim=-1).clamp(-5.0, 5.0)
    going = env.episode_length_buf == 3
    assert going.sum() > NUM // 2
    torch.testing.assert_close(obs[going], expected[going], atol=1e-4, rtol=1e-4)


def test_rewards_are_the_specified_sum(world):
    env, hand = world
    env.reset()
    generator = torch.Generator().manual_seed(2)
    action = 2.0 * torch.rand(NUM, len(hand.motors), generator=generator) - 1.0
    goal_quat, goal_pos = goal_of(env).goal_quat.clone(), goal_of(env).goal_pos + env.scene.env_origins
    reward, terminated = env.step(action)[1:3]
    assert not terminated.any()
    cube = env.scene["object"]
    error = angle_between(cube.data.root_link_quat_w.torch, goal_quat)
    distance = (cube.data.root_link_pos_w.torch - goal_pos).norm(dim=-1)
    expected = -10.0 * distance + 1.0 / (error + 0.1) - 0.0002 * (action**2).sum(-1) + 250.0 * (error <= 0.1)
    torch.testing.assert_close(reward, expected, atol=1e-3, rtol=1e-3)


def test_a_reached_goal_pays_260_and_a_new_one_appears(world):
    env, hand = world
    env.reset()
    # free of the hand, so that nothing turns them
    place_cube(env, (0.0, 0.0, 0.15))
    goal = goal_of(env)
    reached = env.scene["object"].data.root_link_quat_w.torch.clone()
    goal.goal_quat[:8] = reached[:8]
    before = goal.goal_quat.clone()
    far = angle_between(reached, before) > 0.2
    far[:8] = False
    obs, _, terminated, *_ = env.step(hold(env, hand))
    assert not terminated.any()
    torch.testing.assert_close(paid(env)["success"][:8], torch.full((8,), 250.0))
    torch.testing.assert_close(paid(env)["orientation"][:8], torch.full((8,), 10.0), atol=0.2, rtol=0)
    assert (paid(env)["success"][far] == 0.0).all()
    assert (angle_between(goal.goal_quat, before)[:8] > 1e-3).all(), "a new goal, of any orientation"
    torch.testing.assert_close(goal.goal_quat[far], before[far])
    size = 11 + len(hand.motors)
    torch.testing.assert_close(obs["policy"][:, -size : -size + 7], goal.command, msg="and the policy sees it")
    torch.testing.assert_close(goal.successes, torch.where(torch.arange(NUM) < 8, 1.0, goal.successes))


def test_successes_of_whole_episodes_are_logged(world):
    env, hand = world
    env.reset()
    place_cube(env, (0.0, 0.0, 0.15))
    goal = goal_of(env)
    goal.goal_quat[:4] = env.scene["object"].data.root_link_quat_w.torch[:4]
    env.step(hold(env, hand))
    successes = goal.successes.clone()
    assert (successes[:4] == 1.0).all()
    # a drop ends whole episodes of two steps
    place_cube(env, (0.3, 0.0, 0.0))
    goal.goal_quat[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    log = env.step(hold(env, hand))[4]["log"]
    assert float(log["Metrics/successes"]) == pytest.approx(successes.mean().item(), abs=0.2)
    assert float(log["Metrics/success_rate"]) == pytest.approx((successes / (successes + 1)).mean().item(), abs=0.1)
    assert "Metrics/episode_return" in log and (goal.successes == 0.0).all()


def test_a_quarter_metre_ends_the_episode_without_a_penalty(world):
    env, hand = world
    env.reset()
    place_cube(env, (0.25, 0.0, 0.0), slice(0, 4))
    place_cube(env, (0.0, 0.0, 0.2), slice(4, 8))
    reward, terminated, truncated = env.step(hold(env, hand))[1:4]
    assert terminated[:4].all() and not terminated[4:].any() and not truncated.any()
    assert (reward[:4] > -2.6).all(), "the distance alone"


def test_the_end_of_time_is_a_truncation(world):
    env, hand = world
    env.reset()
    env.episode_length_buf[4:8] = env.max_episode_length - 1
    terminated, truncated = env.step(hold(env, hand))[2:4]
    assert truncated[4:8].all() and truncated.sum() == 4 and not terminated.any()


def test_the_cube_lies_in_the_hand(world):
    """Half a second after it was let go it rests on the hand, neither inside it nor shot away."""
    env, hand = world
    env.reset()
    held = hold(env, hand)
    fallen = torch.zeros(NUM, dtype=torch.bool)
    for _ in range(round(0.5 / env.step_dt)):
        fallen |= env.step(held)[2]
    cube = env.scene["object"]
    height = (cube.data.root_link_pos_w.torch - env.scene.env_origins)[:, 2]
    speed = cube.data.root_com_vel_w.torch[:, :3].norm(dim=-1)
    resting = ~fallen & (speed < 0.1) & (height > hand.start[2] - 0.1)
    assert resting.sum() >= NUM // 2, (height, speed, fallen)


def test_an_allegro_fingertip_ends_62_mm_beyond_its_last_joint(world):
    """A cube put 3 mm into the end of the outstretched middle finger is pushed away, one 3 mm before it is not."""
    env, hand = world
    if hand is not HANDS["allegro"]:
        pytest.skip("the other hand")
    env.reset()
    robot, cube = env.scene["robot"], env.scene["object"]
    for act in (set_joints, aim):
        act(robot, robot.data.default_joint_pos.torch.clone())
    env.sim.forward()
    env.scene.update(0.0)
    link, tip = (
        robot.data.body_link_pose_w.torch[:, robot.body_names.index(f"middle_{part}")] for part in ("link_3", "tip")
    )
    along = rotation(link[:, 3:])[:, :, 2].float()
    # the frame is the centre of the round end, whose radius is 7 mm
    reach = ((tip - link)[:, :3] * along).sum(-1) + 0.007
    torch.testing.assert_close(reach, torch.full((NUM,), 0.0622), atol=2e-4, rtol=0)
    gap = torch.where(torch.arange(NUM) < NUM // 2, -0.003, 0.003)
    beyond = 0.0622 + 0.5 * hand.edge + gap - ((tip - link)[:, :3] * along).sum(-1)
    start = tip[:, :3] + beyond.unsqueeze(-1) * along
    cube.write_root_pose_to_sim_index(root_pose=torch.cat([start, link[:, 3:]], dim=-1))
    cube.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    for _ in range(3):
        env.scene.write_data_to_sim()
        env.sim.step(render=False)
        env.scene.update(env.physics_dt)
    # PhysX moves bodies apart without giving them a velocity
    moved = ((cube.data.root_link_pos_w.torch - start) * along).sum(-1)
    assert (moved[: NUM // 2] > 0.001).all() and (moved[NUM // 2 :].abs() < 0.0005).all(), moved


@pytest.mark.parametrize("steps", [10, pytest.param(600, marks=pytest.mark.slow)])
def test_random_actions_leave_everything_finite(world, steps):
    env, hand = world
    steps = 10 * steps if isinstance(env.cfg.sim.physics, OvPhysxCfg) else steps
    env.reset()
    generator = torch.Generator().manual_seed(3)
    robot, cube = env.scene["robot"], env.scene["object"]
    finite, fastest, thrown = torch.tensor(True), torch.tensor(0.0), torch.tensor(0.0)
    for _ in range(steps):
        obs, reward, *_ = env.step(torch.sign(2.0 * torch.rand(NUM, len(hand.motors), generator=generator) - 1.0))
        finite &= torch.isfinite(obs["policy"]).all() & torch.isfinite(reward).all()
        fastest = torch.maximum(fastest, robot.data.joint_vel.torch.abs().max())
        thrown = torch.maximum(thrown, cube.data.root_com_vel_w.torch[:, :3].norm(dim=-1).max())
    assert finite
    assert fastest < 200.0 and thrown < 10.0, f"joint {fastest:.0f} rad/s, cube {thrown:.1f} m/s"
