"""``Epo-Humanoid-Run-v0`` against the specification's numbers, on both engines."""

import math

import pytest
import torch
from isaaclab_ov.physics import OvPhysxCfg

from epo_tasks.robots.dmc_humanoid import FACTS
from support.envs import make_env
from support.simulate import ENGINES, set_joints

pytestmark = pytest.mark.integration

TASK = "Epo-Humanoid-Run-v0"
NUM = 24
GEARS = {
    "abdomen": (67.5, 67.5, 67.5),
    "hip": {"x": 45.0, "z": 45.0, "y": 135.0},
    "knee": 90.0,
    "ankle": 22.5,
    "shoulder": 67.5,
    "elbow": 45.0,
}


@pytest.fixture(scope="module", params=ENGINES)
def env(request):
    with make_env(TASK, f"physics={request.param}", num_envs=NUM) as env:
        yield env


def gear(joint: str) -> float:
    part = joint.removeprefix("left_").removeprefix("right_")
    if part.startswith("abdomen"):
        return 67.5
    if part.startswith("hip"):
        return GEARS["hip"][part[-1]]
    return GEARS[part.partition("_")[0].rstrip("12")]


def stand(env) -> None:
    """Put all robots upright with all angles zero, at rest, and begin their rewards there."""
    env.reset()
    set_joints(env.scene["robot"], torch.zeros(NUM, 21))


def random_steps(env, steps: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        action = 2.0 * torch.rand(NUM, 21, generator=generator) - 1.0
        result = env.step(action)
    return action, result


def scaled_angles(robot) -> torch.Tensor:
    lower = torch.tensor([joint.lower for joint in FACTS.moving_joints])
    upper = torch.tensor([joint.upper for joint in FACTS.moving_joints])
    return (2.0 * robot.data.joint_pos.torch - upper - lower) / (upper - lower)


def torso_axes(robot) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the x and z axes of the torso in the world."""
    x, y, z, w = robot.data.root_link_quat_w.torch.unbind(-1)
    forward = torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], dim=-1)
    up = torch.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], dim=-1)
    return forward, up


def test_timing_and_sizes(env):
    assert env.step_dt == pytest.approx(1 / 60)
    assert env.max_episode_length == 1000
    assert env.observation_manager.group_obs_dim["policy"] == (87,)
    assert env.action_manager.total_action_dim == 21


def test_episode_begins_as_specified(env):
    env.reset()
    robot = env.scene["robot"]
    lower = torch.tensor([max(joint.lower, -0.2) for joint in FACTS.moving_joints])
    upper = torch.tensor([min(joint.upper, 0.2) for joint in FACTS.moving_joints])
    angle, velocity = robot.data.joint_pos.torch, robot.data.joint_vel.torch
    assert (angle >= lower - 1e-4).all() and (angle <= upper + 1e-4).all()
    assert angle.std() > 0.08 and velocity.std() > 0.03 and (velocity.abs() <= 0.1001).all()
    position = robot.data.root_link_pos_w.torch - env.scene.env_origins
    torch.testing.assert_close(position, torch.tensor([0.0, 0.0, 1.34]).expand_as(position), atol=1e-4, rtol=0)
    assert (robot.data.root_link_quat_w.torch[:, 3].abs() > 1 - 1e-6).all()
    assert (robot.data.root_com_vel_w.torch.abs() < 1e-3).all()
    assert (robot.data.joint_pos_target.torch == 0.0).all(), "springs pull to angle zero"


def test_the_head_is_above_the_torso(env):
    stand(env)
    robot = env.scene["robot"]
    head = robot.data.body_link_pos_w.torch[:, robot.body_names.index("head"), 2]
    torch.testing.assert_close(head, torch.full((NUM,), 1.34 + 0.19), atol=1e-3, rtol=0)


def test_an_action_is_a_clipped_share_of_the_motors_torque(env):
    stand(env)
    action = torch.zeros(NUM, 21)
    action[0], action[1], action[2] = 10.0, -10.0, 0.3
    env.step(action)
    torque = env.action_manager.get_term("joint_effort").processed_actions
    gears = torch.tensor([gear(name) for name in env.scene["robot"].joint_names])
    for row, share in ((0, 1.0), (1, -1.0), (2, 0.3)):
        torch.testing.assert_close(torque[row], share * gears)


def test_every_motor_turns_its_own_joint(env):
    """Robot i drives joint i towards the middle of its range, the last robots drive nothing."""
    stand(env)
    sign = torch.tensor([1.0 if joint.upper + joint.lower >= -1e-6 else -1.0 for joint in FACTS.moving_joints])
    action = torch.zeros(NUM, 21)
    action[torch.arange(21), torch.arange(21)] = sign
    env.step(action)
    velocity = env.scene["robot"].data.joint_vel.torch
    gain = sign * (velocity[:21] - velocity[21]).diagonal()
    assert (gain > 0.5).all(), gain


def test_observation_is_the_specified_vector(env):
    env.reset()
    action, result = random_steps(env, 4)
    robot, sensor = env.scene["robot"], env.scene["joint_wrench"]
    position = robot.data.root_link_pos_w.torch - env.scene.env_origins
    x, y, z, w = robot.data.root_link_quat_w.torch.unbind(-1)
    roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    forward, up = torso_axes(robot)
    target = torch.tensor([1000.0, 0.0]) - position[:, :2]
    heading = (forward[:, :2] * target / target.norm(dim=-1, keepdim=True)).sum(-1)
    feet = [sensor.body_names.index(name) for name in ("left_foot", "right_foot")]
    wrench = torch.cat([sensor.data.force.torch[:, feet], sensor.data.torque.torch[:, feet]], dim=-1)
    expected = torch.cat(
        [
            position[:, 2:],
            robot.data.root_lin_vel_b.torch,
            0.25 * robot.data.root_ang_vel_b.torch,
            torch.stack([yaw, roll, torch.atan2(target[:, 1], target[:, 0]) - yaw, up[:, 2], heading], dim=-1),
            scaled_angles(robot),
            0.1 * robot.data.joint_vel.torch,
            0.01 * wrench.flatten(1),
            action,
        ],
        dim=-1,
    )
    assert (env.episode_length_buf == 4).all()
    torch.testing.assert_close(result[0]["policy"], expected, atol=1e-3, rtol=1e-3)
    assert (wrench.flatten(1).abs().amax(dim=-1) > 1.0).all(), "the feet feel something"


def test_rewards_are_the_specified_sum(env):
    env.reset()
    random_steps(env, 11)
    robot = env.scene["robot"]
    before = robot.data.root_link_pos_w.torch.clone() - env.scene.env_origins
    old_steps = env.episode_length_buf.clone()
    action, (_, reward, terminated, *_) = random_steps(env, 1, seed=5)
    alive = (env.episode_length_buf == old_steps + 1) & ~terminated
    assert alive.sum() > 10
    after = robot.data.root_link_pos_w.torch - env.scene.env_origins
    target = torch.tensor([1000.0, 0.0], dtype=torch.double)
    distance = [(target - place[:, :2].double()).norm(dim=-1) for place in (before, after)]
    speed = (60.0 * (distance[0] - distance[1])).float().clamp(max=10.0)
    forward, up = torso_axes(robot)
    heading = forward[:, 0]
    gears = torch.tensor([gear(name) for name in robot.joint_names]) / 135.0
    angles = scaled_angles(robot).abs()
    limits = torch.where(angles > 0.98, (angles - 0.98) / 0.02 * gears, 0.0).sum(-1)
    expected = (
        speed
        + 2.0
        + 0.1 * (up[:, 2] > 0.93)
        + 0.5 * torch.where(heading > 0.8, 1.0, heading / 0.8)
        - 0.01 * (action**2).sum(-1)
        - 0.05 * ((action * 0.1 * robot.data.joint_vel.torch).abs() * gears).sum(-1)
        - 0.25 * limits
    )
    # a float of 1,000 m resolves 4 mm/s over one step
    torch.testing.assert_close(reward[alive], expected[alive], atol=0.02, rtol=1e-3)


@pytest.mark.parametrize(
    ("speed", "cap", "reward"), [(5.0, 10.0, 7.6), (12.0, 10.0, 12.6), (12.0, None, 14.6), (0.0, 10.0, 2.6)]
)
def test_a_scripted_torso_earns_what_its_speed_is_worth(env, speed, cap, reward):
    stand(env)
    robot, progress = env.scene["robot"], env.reward_manager.get_term_cfg("progress")
    pose = robot.data.root_link_pose_w.torch.clone()
    progress.params["speed_cap"] = cap
    try:
        total = torch.zeros(NUM)
        for _ in range(10):
            pose[:, 0] += speed * env.step_dt
            robot.write_root_pose_to_sim_index(root_pose=pose)
            total += env.reward_manager.compute(env.step_dt)
    finally:
        progress.params["speed_cap"] = 10.0
    torch.testing.assert_close(total / 10, torch.full((NUM,), reward), atol=5e-3, rtol=0)


def test_a_low_torso_is_a_fall_that_costs_one(env):
    stand(env)
    robot = env.scene["robot"]
    pose = robot.data.root_link_pose_w.torch.clone()
    # lying in the air
    pose[:4, 2] = 0.78
    pose[:4, 3:] = torch.tensor([0.0, 0.5**0.5, 0.0, 0.5**0.5])
    robot.write_root_pose_to_sim_index(root_pose=pose)
    _, _, terminated, truncated, _ = env.step(torch.zeros(NUM, 21))
    assert terminated[:4].all() and not terminated[4:].any() and not truncated.any()
    paid = dict(zip(env.reward_manager.active_terms, (env.reward_manager._step_reward * env.step_dt).T, strict=True))
    torch.testing.assert_close(paid["fall"], -terminated.float())
    torch.testing.assert_close(paid["alive"], 2.0 * ~terminated)


def test_the_end_of_time_is_a_truncation(env):
    stand(env)
    env.episode_length_buf[4:8] = env.max_episode_length - 1
    _, _, terminated, truncated, _ = env.step(torch.zeros(NUM, 21))
    assert truncated[4:8].all() and truncated.sum() == 4 and not terminated.any()


def test_control_suite_score_is_the_specified_product_and_is_logged(env):
    env.reset()
    total = torch.zeros(NUM)
    for _ in range(3):
        action, _ = random_steps(env, 1)
        total += control_suite_score(env.scene["robot"], action)
    sums = env.reward_manager._totals["dmc_score"]
    torch.testing.assert_close(sums, total, atol=1e-3, rtol=1e-3)
    assert (total > 0.3).all()
    # the robots that end now have had a whole episode of four steps
    env.cfg.episode_length_s = 4 / 60 - 1e-3
    try:
        assert env.max_episode_length == 4
        extras = env.step(torch.zeros(NUM, 21))[4]
    finally:
        env.cfg.episode_length_s = 16.66
    assert total.mean() < float(extras["log"]["Metrics/dmc_score"]) < total.mean() + 1.0
    assert "Metrics/episode_return" in extras["log"]


def control_suite_score(robot, action) -> torch.Tensor:
    """Score of one step by the formulas of the specification, body by body."""
    head = robot.data.body_link_pos_w.torch[:, robot.body_names.index("head"), 2]
    _, up = torso_axes(robot)
    momentum = torch.zeros(NUM, 2)
    for index, name in enumerate(robot.body_names):
        momentum += FACTS.link(name).mass * robot.data.body_com_lin_vel_w.torch[:, index, :2]
    speed = (momentum / 40.8440212).norm(dim=-1)
    scores = []
    for h, u, s, a in zip(head.tolist(), up[:, 2].tolist(), speed.tolist(), action.tolist(), strict=True):
        standing = 1.0 if h >= 1.4 else math.exp(-0.5 * (2.146 * (1.4 - h) / 0.35) ** 2)
        upright = 1.0 if u >= 0.9 else max(0.0, 1 - (0.9 - u) / 1.9)
        control = (4 + sum(max(0.0, 1 - value**2) for value in a) / 21) / 5
        scores.append(standing * upright * control * (5 * min(s / 10, 1) + 1) / 6)
    return torch.tensor(scores)


@pytest.mark.parametrize("steps", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_random_actions_leave_everything_finite(env, steps):
    steps = 10 * steps if isinstance(env.cfg.sim.physics, OvPhysxCfg) else steps
    env.reset()
    generator = torch.Generator().manual_seed(2)
    robot, finite, fastest = env.scene["robot"], torch.tensor(True), torch.tensor(0.0)
    for _ in range(steps):
        obs, reward, *_ = env.step(torch.sign(2.0 * torch.rand(NUM, 21, generator=generator) - 1.0))
        finite &= torch.isfinite(obs["policy"]).all() & torch.isfinite(reward).all()
        fastest = torch.maximum(fastest, robot.data.joint_vel.torch.abs().max())
    assert finite
    assert fastest < 150.0, f"a joint reached {fastest:.0f} rad/s"
