"""``Epo-A1-Parkour-v0``: goals, ends, levels and pushes, against the specification's numbers."""

import pytest
import torch

from support.parkour import goals_of, make_parkour, place, stand

pytestmark = pytest.mark.integration

NUM = 15
ABOVE = torch.tensor([0.0, 0.0, 0.42])


@pytest.fixture(scope="module")
def env():
    # robots that do not tip over by themselves, and nobody pushes them
    still = ("env.events.trunk_com=null", "env.events.push.params.speed=0.0")
    with make_parkour("ovphysx", *still, num_envs=NUM) as env:
        yield env


@pytest.fixture(autouse=True)
def level_zero(env):
    goals_of(env).terrain.set_levels(torch.zeros(NUM))
    env.episode_length_buf.zero_()
    env.reset()


def put_on_goal(env, robots: list[int], goal: int) -> None:
    place(env, robots, goals_of(env).goals[robots, goal] + ABOVE)


def test_any_block_of_environments_meets_every_column_once(env):
    types = env.scene.terrain.terrain_types
    for begin in range(NUM - 4):
        assert sorted(types[begin : begin + 5].tolist()) == list(range(5))
    assert env.scene.terrain.column_types == ["stones", "hurdles", "flat", "steps", "gaps"]


def test_robots_begin_on_level_zero_at_the_start_of_their_tile(env):
    assert (env.scene.terrain.terrain_levels == 0).all()
    robot = env.scene["robot"]
    position = robot.data.root_link_pos_w.torch
    column = torch.arange(NUM) % 5
    expected = torch.stack([torch.full((NUM,), -89.0), 4.0 * column - 8.0, torch.full((NUM,), 0.42)], dim=-1)
    torch.testing.assert_close(position, expected, atol=1e-3, rtol=0)
    offset = robot.data.joint_pos.torch - robot.data.default_joint_pos.torch
    assert (offset > -1e-4).all() and (offset < 0.9001).all() and offset.std() > 0.2
    low, high = robot.data.joint_pos_limits.torch.unbind(-1)
    assert (robot.data.joint_pos.torch <= high + 1e-4).all() and (robot.data.joint_pos.torch >= low - 1e-4).all()
    assert (robot.data.joint_vel.torch.abs() < 1e-4).all()


def test_motors_are_springs_and_dampers_of_random_strength_and_clipped(env):
    robot = env.scene["robot"]
    strength = env.event_manager.get_term_cfg("motor_strength").func.strength
    robot.write_joint_velocity_to_sim_index(velocity=torch.full((NUM, 12), 3.0))
    action = torch.full((NUM, 12), 0.2)
    action[:5] = 100.0
    env.action_manager.process_action(action)
    env.action_manager.apply_action()
    env.scene.write_data_to_sim()
    target = robot.data.default_joint_pos.torch + torch.where(action > 4.8, 1.2, 0.25 * action)
    spring = 40.0 * strength[:, :12] * (target - robot.data.joint_pos.torch)
    limit = torch.tensor([20.0 if "hip" in name else 30.0 for name in robot.joint_names])
    expected = (spring - strength[:, 12:] * 3.0).clamp(-limit, limit)
    torch.testing.assert_close(robot.actuators.applied_effort.torch, expected, atol=1e-3, rtol=1e-3)
    assert (expected.abs() == limit).any()


def test_a_goal_takes_six_steps_that_need_not_be_in_a_row(env):
    goals = goals_of(env)
    put_on_goal(env, [0, 1], 0)
    stand(env, 5)
    assert goals.reached[:2].tolist() == [0, 0] and goals.steps_at_goal[:2].tolist() == [5, 5]
    place(env, [1], goals.goals[1:2, 0] + ABOVE + torch.tensor([-0.4, 0.0, 0.0]))
    stand(env, 3)
    assert goals.reached[:2].tolist() == [1, 0] and goals.steps_at_goal[1] == 5
    put_on_goal(env, [1], 0)
    stand(env)
    assert goals.reached[1] == 1 and goals.steps_at_goal[1] == 0


def test_headings_point_to_the_current_and_the_next_goal_and_are_seen_at_10_hz(env):
    goals = goals_of(env)
    while env.common_step_counter % 5:
        stand(env)
    robot = env.scene["robot"]
    position, yaw = robot.data.root_link_pos_w.torch[:, :2], robot.data.heading_w.torch
    for index in (0, 1):
        way = goals.goals[:, index, :2] - position
        error = torch.atan2(way[:, 1], way[:, 0]) - yaw
        error = torch.atan2(error.sin(), error.cos())
        torch.testing.assert_close(goals.seen_heading_errors[:, index], error, atol=1e-4, rtol=0)
    place(env, [3], goals.goals[3:4, 0] + ABOVE + torch.tensor([-0.5, 0.0, 0.0]), yaw=1.0)
    seen, scan = [], []
    for _ in range(5):
        obs = stand(env)[0]["policy"]
        seen.append(obs[3, 5].item())
        scan.append(obs[3, 50:182].clone())
    assert len(set(seen[:4])) == 1 and seen[4] == pytest.approx(-1.0, abs=0.2)
    assert torch.equal(scan[0], scan[3]) and not torch.equal(scan[3], scan[4])


def test_last_goal_ends_the_episode_as_a_truncation(env):
    goals = goals_of(env)
    goals.reached[2] = 7
    put_on_goal(env, [2], 7)
    _, _, terminated, truncated, extras = stand(env, 6)
    assert truncated.tolist() == [index == 2 for index in range(NUM)] and not terminated.any()
    assert extras["log"]["Metrics/success_rate"] == 1.0 and extras["log"]["Metrics/goals"] == 8.0
    assert goals.reached[2] == 0


def test_falls_are_terminations_and_time_is_a_truncation(env):
    robot = env.scene["robot"]
    pose = torch.cat([robot.data.root_link_pos_w.torch, robot.data.root_link_quat_w.torch], dim=-1)
    pose[0, 3:] = torch.tensor([0.7071, 0.0, 0.0, 0.7071])
    pose[1, 3:] = torch.tensor([0.0, 0.7071, 0.0, 0.7071])
    pose[2, 3:] = torch.tensor([0.5646, 0.0, 0.0, 0.8253])
    pose[:3, 2] += 0.6
    pose[3, 2] = -0.3
    robot.write_root_pose_to_sim_index(root_pose=pose)
    robot.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    env.episode_length_buf[4] = 999
    _, _, terminated, truncated, _ = stand(env)
    assert terminated.tolist() == [index in (0, 1, 3) for index in range(NUM)], "1.2 rad is no fall, 1.57 is"
    assert truncated.tolist() == [index == 4 for index in range(NUM)]


def finish(env, distance: torch.Tensor) -> torch.Tensor:
    """End all episodes this far from the start, along y, with a command of 0.5 m/s (10 m), and return the levels."""
    goals = goals_of(env)
    goals.speed[:] = 0.5
    origin = env.scene.env_origins.clone()
    place(env, list(range(NUM)), origin + ABOVE + torch.stack([distance, 0 * distance, 0 * distance], dim=-1))
    env.episode_length_buf[:] = 999
    stand(env)
    return env.scene.terrain.terrain_levels.clone()


def test_levels_rise_beyond_80_percent_of_the_command_and_fall_below_40(env):
    env.scene.terrain.set_levels(torch.full((NUM,), 3))
    env.reset()
    distance = torch.tensor([8.2, 7.8, 6.0, 4.2, 3.8] * 3)
    assert finish(env, distance).tolist() == [4, 3, 3, 3, 2] * 3
    # the next episode is on the new tile
    expected = env.scene.terrain.terrain_origins[[4, 3, 3, 3, 2], range(5)]
    torch.testing.assert_close(env.scene.env_origins[:5], expected)
    torch.testing.assert_close(
        env.scene["robot"].data.root_link_pos_w.torch[:5, :2], expected[:, :2], atol=1e-3, rtol=0
    )
    torch.testing.assert_close(goals_of(env).goals[0], env.scene.terrain.flat_patches["goals"][4, 0])


def test_levels_never_become_negative_and_beyond_the_last_one_is_a_random_one(env):
    assert (finish(env, torch.zeros(NUM)) == 0).all(), "standing still is no way up"
    env.scene.terrain.set_levels(torch.full((NUM,), 9))
    env.reset()
    levels = finish(env, torch.full((NUM,), 9.0))
    assert (levels >= 0).all() and (levels <= 9).all() and len(levels.unique()) > 2


def test_an_episode_without_a_step_is_not_judged(env):
    env.scene.terrain.set_levels(torch.full((NUM,), 5))
    env.reset()
    env.reset()
    assert (env.scene.terrain.terrain_levels == 5).all()


def test_mode_goals_also_promotes_those_who_finish_a_short_track(env):
    params = env.curriculum_manager._term_cfgs[0].params
    goals = goals_of(env)
    levels = {}
    for mode in ("distance", "goals"):
        env.scene.terrain.set_levels(torch.full((NUM,), 3))
        env.reset()
        params["mode"] = mode
        goals.reached[:5] = 8
        levels[mode] = finish(env, torch.full((NUM,), 6.0)).tolist()
    params["mode"] = "distance"
    assert levels == {"distance": [3] * NUM, "goals": [4] * 5 + [3] * 10}


def test_metric_is_the_mean_level_in_all_and_by_type(env):
    env.scene.terrain.set_levels(torch.arange(NUM) % 5)
    env.reset()
    env.episode_length_buf[4] = 999
    log = stand(env)[4]["log"]
    # robot 4 of the last column stood still and went from 4 to 3
    assert float(log["Metrics/terrain_level"]) == pytest.approx((3 * 10 - 1) / NUM)
    assert float(log["Curriculum/terrain_levels/hurdles"]) == 1.0
    assert float(log["Curriculum/terrain_levels/gaps"]) == pytest.approx(11 / 3)
    torch.testing.assert_close(env.extras["terrain_level"], env.scene.terrain.terrain_levels)


def test_a_resumed_run_goes_on_with_its_levels(env):
    env.scene.terrain.set_levels(torch.arange(NUM) % 10)
    state = env.state_dict()
    env.scene.terrain.set_levels(torch.zeros(NUM))
    env.episode_length_buf[:] = 500
    env.load_state_dict(state)
    assert env.scene.terrain.terrain_levels.tolist() == [index % 10 for index in range(NUM)]
    position = env.scene["robot"].data.root_link_pos_w.torch
    torch.testing.assert_close(position[:, 0], 18.0 * (torch.arange(NUM) % 10) - 89.0, atol=1e-3, rtol=0)


def test_speeds_are_drawn_at_reset_and_every_six_seconds(env):
    goals = goals_of(env)
    speed = goals.speed.clone()
    assert (speed >= 0.3).all() and (speed <= 0.8).all() and speed.std() > 0.05
    goals.time_left[:3] = 0.01
    stand(env)
    assert (goals.speed[:3] != speed[:3]).all() and (goals.speed[3:] == speed[3:]).all()
    torch.testing.assert_close(goals.time_left[:3], torch.full((3,), 6.0))


def test_standing_still_earns_about_a_hundredth_a_step(env):
    total = torch.zeros(NUM)
    stand(env, 40)
    for _ in range(25):
        total += stand(env)[1]
    # heading alone: 0.02 x 0.5, for those that look straight at their goal; settling costs and moves a little
    assert (total / 25 < 0.015).all() and 0.006 < (total / 25).median() < 0.011


def test_a_push_overwrites_the_horizontal_velocity_of_all(env):
    robot = env.scene["robot"]
    before = torch.tensor([2.0, -2.0, 0.3, 0.1, 0.2, 0.3]).repeat(NUM, 1)
    robot.write_root_velocity_to_sim_index(root_velocity=before)
    term = env.event_manager.get_term_cfg("push")
    assert term.mode == "interval" and term.interval_range_s == (8.0, 8.0) and term.is_global_time
    term.func(env, None, speed=0.5)
    after = robot.data.root_com_vel_w.torch
    assert (after[:, :2].abs() <= 0.5).all() and after[:, :2].std() > 0.15
    torch.testing.assert_close(after[:, 2:], before[:, 2:], atol=1e-3, rtol=0)
