"""``Epo-Kuka-OneArm-Regrasp-v0`` against the specification, on both engines."""

import json
import math
from pathlib import Path

import pytest
import torch

import epo_tasks.robots
from support.envs import make_env
from support.kuka import far_away, feed, fills, goal_of, hold
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

FACTS = json.loads((Path(epo_tasks.robots.__file__).parent / "facts" / "kuka_allegro.json").read_text())["extras"]
NUM = 16


@pytest.fixture(scope="module", params=ENGINES)
def env(request):
    with make_env("Epo-Kuka-OneArm-Regrasp-v0", f"physics={request.param}", num_envs=NUM) as env:
        yield env


@pytest.fixture
def goal(env):
    env.reset()
    return goal_of(env)


def test_blocks_of_the_observation(env):
    names, sizes = env.observation_manager.active_terms["policy"], env.observation_manager.group_obs_term_dim["policy"]
    starts = [sum(size[0] for size in sizes[:index]) for index in range(len(sizes))]
    assert starts == [0, 23, 46, 49, 59, 69, 81, 84, 87, 90, 91, 95, 96, 97, 98]
    assert names[0] == "joint_positions" and names[-1] == "last_reward"
    assert env.step_dt == pytest.approx(1 / 60)


def test_observation_is_the_specified_vector(env, goal):
    for _ in range(3):
        obs, reward, *_ = env.step(torch.rand(NUM, 23) - 0.5)
    policy = obs["policy"]
    robot, box = env.scene["robot"], env.scene["object"]
    low, high = robot.data.joint_pos_limits.torch.unbind(-1)
    torch.testing.assert_close(policy[:, :23], (2 * robot.data.joint_pos.torch - low - high) / (high - low))
    torch.testing.assert_close(policy[:, 23:46], robot.data.joint_vel.torch.clamp(-10, 10))
    place = box.data.root_link_pos_w.torch - env.scene.env_origins
    torch.testing.assert_close(policy[:, 46:49] + policy[:, 81:84], place, atol=1e-5, rtol=0)
    torch.testing.assert_close(policy[:, 84:87], place - goal.goal_pos, atol=1e-5, rtol=0)
    torch.testing.assert_close(policy[:, 59:63], box.data.root_link_quat_w.torch)
    tips = policy[:, 69:81].unflatten(1, (4, 3)) + policy[:, 46:49].unsqueeze(1)
    torch.testing.assert_close((tips - place.unsqueeze(1)).norm(dim=-1), goal.tip_distances, atol=1e-5, rtol=1e-5)
    assert (policy[:, 91:95] <= goal.tip_distances + 1e-6).all(), "records are never farther"
    torch.testing.assert_close(policy[:, 96], torch.full((NUM,), math.log(1.3)))
    torch.testing.assert_close(policy[:, 98], (0.01 * reward).clamp(-10, 10))
    torch.testing.assert_close(policy[0, 87:90], torch.tensor([4.0, 0.75, 1.0]))


def test_reference_points_of_the_rest_pose(env, goal):
    robot = env.scene["robot"]
    position = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=position)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position))
    env.sim.forward()
    env.scene.update(0.0)
    goal.measure(again=True)
    expected = FACTS["fk_checks"]["one_arm_default_thumb_0_at_0p2793"]
    points = torch.cat([goal.palms, goal.tips], dim=1)
    for index, name in enumerate(["palm_center", "index_tip", "middle_tip", "ring_tip", "thumb_tip"]):
        torch.testing.assert_close(points[0, index], torch.tensor(expected[name]), atol=1e-3, rtol=0)


def test_reset_ranges(env):
    position, velocity, place = [], [], []
    for _ in range(8):
        env.reset()
        position.append(env.scene["robot"].data.joint_pos.torch.clone())
        velocity.append(env.scene["robot"].data.joint_vel.torch.clone())
        place.append(env.scene["object"].data.root_link_pos_w.torch - env.scene.env_origins)
    position, velocity, place = torch.cat(position), torch.cat(velocity), torch.cat(place)
    low = [-1.7106, 1.2045, -0.2967, 1.0290, -0.2967, 1.1271, 1.8168, -0.0558, -0.0279]
    high = [-1.1172, 1.6233, 0.2967, 1.4478, 0.2967, 1.5459, 2.4276, 0.0558, 0.1728]
    assert (position[:, :9] > torch.tensor(low) - 2e-3).all() and (position[:, :9] < torch.tensor(high) + 2e-3).all()
    spread = (position[:, :9].amax(0) - position[:, :9].amin(0)) / (torch.tensor(high) - torch.tensor(low))
    assert (spread > 0.85).all(), "the whole range is used"
    assert (position[:, 19] > 0.2792 - 1e-4).all(), "the thumb starts inside its limits"
    assert (velocity.abs() <= 0.5 + 1e-4).all() and velocity.std() > 0.2
    centre = torch.tensor([0.0, 0.0, 0.63])
    reach = (place - centre).abs().amax(0)
    assert (reach <= torch.tensor([0.1, 0.1, 0.02]) + 1e-5).all() and (reach > torch.tensor([0.08, 0.08, 0.016])).all()


def test_arm_targets_move_and_hand_targets_are_set(env, goal):
    arm, hand = env.action_manager.get_term("arm"), env.action_manager.get_term("hand")
    start = arm.processed_actions.clone()
    torch.testing.assert_close(start, env.scene["robot"].data.joint_pos.torch[:, :7])
    env.step(torch.zeros(NUM, 23))
    torch.testing.assert_close(arm.processed_actions, start)
    limits = env.scene["robot"].data.joint_pos_limits.torch[:, 7:]
    torch.testing.assert_close(hand.processed_actions, limits.mean(dim=-1))
    action = torch.zeros(NUM, 23)
    action[:, 2], action[:, 10], action[:, 11] = 5.0, 5.0, -1.0
    env.step(action)
    torch.testing.assert_close(arm.processed_actions[:, 2], start[:, 2] + 10.0 / 60.0)
    torch.testing.assert_close(hand.processed_actions[:, 3], limits[:, 3, 1])
    torch.testing.assert_close(hand.processed_actions[:, 4], limits[:, 4, 0])


def test_objects_come_to_rest_on_the_table(env, goal):
    box = env.scene["object"]
    pose = torch.cat([env.scene.env_origins, torch.zeros(NUM, 4)], dim=-1)
    # on the side away from the hand
    pose[:, :3] += torch.tensor([-0.15, -0.12, 0.0])
    pose[:, 2] = 0.53 + 0.025 * goal.object_scales[:, 2] + 0.005
    pose[:, 6] = 1.0
    box.write_root_pose_to_sim_index(root_pose=pose)
    box.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    env.action_manager.get_term("push")._probability.zero_()
    for _ in range(30):
        env.step(hold(env))
    # thin ones may have been touched by the hand; most were not
    rest = 0.53 + 0.025 * goal.object_scales[:, 2]
    flat = (goal.object_pos[:, 2] - rest).abs() < 2e-3
    assert flat.float().mean() > 0.7, goal.object_pos[:, 2] - rest
    mass = 0.05 * goal.object_scales.prod(dim=-1)
    torch.testing.assert_close(box.data.body_mass.torch.flatten(), mass, rtol=1e-4, atol=0)


def test_lift_reward_and_bonus(env, goal):
    still = far_away(env)
    paid = feed(env, **still)
    assert (paid["lifting"] == 0).all() and (paid["lifted"] == 0).all(), "h is -0.025 on the table"
    still["object_pos"][:, 2] = 0.63
    torch.testing.assert_close(feed(env, **still)["lifting"], torch.full((NUM,), 20 * 0.05), rtol=1e-4, atol=0)
    still["object_pos"][:, 2] = 0.731
    paid = feed(env, **still)
    torch.testing.assert_close(paid["lifted"], torch.full((NUM,), 300.0))
    assert (paid["lifting"] == 0).all()
    paid = feed(env, **still)
    assert (paid["lifted"] == 0).all() and (paid["lifting"] == 0).all(), "only once"


def test_only_records_of_the_fingertips_are_paid(env, goal):
    still = far_away(env)
    assert (feed(env, **still)["reaching"] == 0).all(), "the first distance is no record"
    nearer = {**still, "tip_distances": still["tip_distances"] - 0.01}
    torch.testing.assert_close(feed(env, **nearer)["reaching"], torch.full((NUM,), 2.0), rtol=1e-4, atol=0)
    for step in (still, nearer):
        assert feed(env, **step)["reaching"].abs().max() < 1e-4, "away and back pays nothing"
    still["object_pos"][:, 2] = 0.8
    feed(env, **still)
    nearer = {**still, "tip_distances": still["tip_distances"] - 0.02}
    assert (feed(env, **nearer)["reaching"] == 0).all(), "one arm is not paid for it once the object is lifted"


def test_progress_is_paid_only_when_lifted(env, goal):
    still = far_away(env)
    feed(env, **still)
    assert (feed(env, **{**still, "distance": torch.full((NUM,), 0.9)})["progress"] == 0).all()
    still["object_pos"][:, 2] = 0.8
    torch.testing.assert_close(
        feed(env, **{**still, "distance": torch.full((NUM,), 0.8)})["progress"],
        torch.full((NUM,), 20.0),
        rtol=1e-4,
        atol=0,
    )


def test_effort(env, goal):
    env.step(torch.rand(NUM, 23) * 2 - 1)
    paid = feed(env, **far_away(env))
    speed = env.scene["robot"].data.joint_vel.torch.abs()
    torch.testing.assert_close(paid["arm_speed"], -0.003 * speed[:, :7].sum(-1))
    torch.testing.assert_close(paid["hand_speed"], -0.0003 * speed[:, 7:].sum(-1))


def test_thirty_near_steps_with_a_gap_are_a_success(env, goal):
    far = far_away(env)
    far["object_pos"][:, 2] = 0.9
    # exactly at the threshold counts
    near = {**far, "distance": (1.5 * goal.tolerance).expand(NUM)}
    total = torch.zeros(NUM)
    for step in range(31):
        paid = feed(env, **(far if step == 10 else near))
        total += paid["success"]
        assert goal.success.all() == (step == 30)
    torch.testing.assert_close(total, torch.full((NUM,), 1000.0), rtol=1e-4, atol=0)
    assert (goal.successes == 1).all() and (goal.goal_steps == 0).all()
    old = goal.goal_pos.clone()
    env.reset_buf[:] = False
    goal.compute(env.step_dt)
    assert (goal.goal_pos != old).any(dim=-1).all()
    assert not goal.lifted.any() and (goal.near_count == 0).all()
    height = env.scene["object"].data.root_link_pos_w.torch[:, 2]
    assert ((height - 0.63).abs() <= 0.02 + 1e-5).all(), "the object is released anew"
    assert goal.best_distance.isinf().all() and goal.best_tip_distances.isinf().all()


def test_goals_are_in_their_box(env, goal):
    fills(goal._draw("place", 10_000), low=(-0.4, 0.0, 0.68), high=(0.4, 0.35, 1.05))


def test_forces_push_in_the_frame_of_the_object(env, goal):
    push = env.action_manager.get_term("push")
    probability = []
    for _ in range(40):
        push.reset(None)
        probability.append(push._probability.log10())
    probability = torch.cat(probability)
    assert probability.min() >= -3.0 and probability.max() <= -1.0
    assert probability.mean() == pytest.approx(-2.0, abs=0.1), "log-uniform"
    push._probability.fill_(1.0)
    squares = []
    for _ in range(200):
        push.process_actions(torch.zeros(NUM, 0))
        squares.append(push.processed_actions.square().mean())
    assert torch.stack(squares).mean().item() == pytest.approx(0.09, rel=0.05)
    push._probability.zero_()
    before = push.processed_actions.clone()
    push.process_actions(torch.zeros(NUM, 0))
    torch.testing.assert_close(push.processed_actions, 0.9979 * before, rtol=1e-4, atol=0)

    # a free body turned by 90 degrees about x: a force along its own y goes up; it is 3 times its weight
    assert (push.processed_actions != 0).all()
    env.reset()
    assert (push.processed_actions == 0).all(), "an episode begins without a force"
    push._probability.zero_()
    goal.steps_since_placed.fill_(100)
    box = env.scene["object"]
    pose = torch.cat([env.scene.env_origins, torch.zeros(NUM, 4)], dim=-1)
    pose[:, :3] += torch.tensor([0.0, -0.5, 1.2])
    pose[:, 3], pose[:, 6] = math.sqrt(0.5), math.sqrt(0.5)
    box.write_root_pose_to_sim_index(root_pose=pose)
    box.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    mass = box.data.body_mass.torch.flatten()
    push._force.zero_()
    push._force[:, 1] = 3.0 * 9.81 * mass
    for _ in range(6):
        env.step(hold(env))
    velocity = box.data.root_com_vel_w.torch[:, :3]
    torch.testing.assert_close(velocity[:, 2], torch.full((NUM,), 2.0 * 9.81 * 0.1), rtol=0.05, atol=0)
    assert velocity[:, :2].abs().max() < 0.05


def test_curriculum(env, goal):
    start = goal.state_dict()
    try:
        goal._steps_since_change = goal.cfg.tolerance_interval - 2
        goal.last_successes.fill_(3.0)
        goal.compute(env.step_dt)
        assert goal.tolerance.item() == pytest.approx(0.075), "too early"
        goal.last_successes.fill_(2.9)
        goal.compute(env.step_dt)
        assert goal.tolerance.item() == pytest.approx(0.075), "too bad"
        goal.last_successes.fill_(2.0)
        goal.last_successes[: NUM // 2] = 4.0
        for change in range(1, 25):
            goal._steps_since_change = goal.cfg.tolerance_interval - 1
            goal.compute(env.step_dt)
            assert goal.tolerance.item() == pytest.approx(max(0.01, 0.075 * 0.9**change), rel=1e-4)
            if change == 10:
                saved = env.state_dict()
        assert 0.075 * 0.9**19 > 0.01 > 0.075 * 0.9**20
        torch.testing.assert_close(goal.true_objective(torch.tensor(3.0)), torch.tensor(4.0))
        goal.last_successes.zero_()
        assert env.load_state_dict(saved) is False
        assert goal.last_successes.mean() == 3.0
        assert goal.tolerance.item() == pytest.approx(0.075 * 0.9**10, rel=1e-4)
        share = (0.075 - goal.tolerance.item()) / 0.065
        assert goal.true_objective(torch.tensor(3.0)).item() == pytest.approx(share + 0.03, rel=1e-4)
    finally:
        goal.load_state_dict(start)
        goal.last_successes.zero_()


def test_ends_of_an_episode(env, goal):
    for last in goal.last_episode.values():
        last.fill_(torch.nan)
    goal.last_successes.zero_()
    env.step(hold(env))
    goal.ever_lifted.zero_()
    goal.ever_lifted[1] = True
    goal.successes[0], goal.successes[4] = 50, 49
    goal.goal_steps[1] = goal.cfg.goal_length - 2
    goal.goal_steps[2] = goal.cfg.goal_length - 3
    box = env.scene["object"]
    pose = torch.cat([box.data.root_link_pos_w.torch, box.data.root_link_quat_w.torch], dim=-1)[3:4]
    pose[:, 1] -= 1.0
    pose[:, 2] = 0.09
    box.write_root_pose_to_sim_index(root_pose=pose, env_ids=torch.tensor([3], dtype=torch.int32))
    goal.successes[3] = 7
    _, _, terminated, truncated, extras = env.step(hold(env))
    assert terminated.nonzero().flatten().tolist() == [0, 3]
    assert truncated.nonzero().flatten().tolist() == [1]
    assert extras["successes"][[0, 1, 3]].tolist() == [50, 0, 7], "latched at the end of the episode"
    assert float(extras["log"]["Metrics/successes"]) == pytest.approx(57 / 3)
    assert float(extras["log"]["Metrics/success_rate"]) == pytest.approx(2 / 3)
    assert float(extras["log"]["Metrics/lifted"]) == pytest.approx(1 / 3)
    assert float(extras["log"]["Metrics/goal_length"]) == 400, "no stages unless asked for"
    assert float(extras["log"]["Metrics/true_objective"]) == pytest.approx(0.57 / 3), "the curriculum is at its start"
    last = extras["last_episode"]
    assert last["success_rate"][[0, 1, 3]].tolist() == [1, 0, 1]
    assert last["true_objective"][2:3].isnan().all(), "no episode yet"
    assert (goal.successes[[0, 1, 3]] == 0).all() and (goal.goal_steps[[0, 1, 3]] == 0).all()
    assert goal.goal_steps[2] == goal.cfg.goal_length - 2
    env.end_episodes(torch.tensor([6]))
    truncated = env.step(hold(env))[3]
    assert truncated.nonzero().flatten().tolist() == [2, 6], "when its time is over, and when asked to"
