"""Other observations and time steps of the in-hand tasks; each needs a simulation of its own."""

import pytest
import torch

from epo_lab.base.errors import UserError
from support.envs import make_env
from support.in_hand import HANDS, limits, place_cube

pytestmark = pytest.mark.integration

NUM = 8
FINGERS = ("FF", "MF", "RF", "LF")


@pytest.mark.parametrize(
    ("name", "option", "size"), [("allegro", "env.fingertips=true", 124), ("shadow", "env.full_state=true", 211)]
)
def test_policies_can_see_more(name, option, size):
    hand = HANDS[name]
    with make_env(hand.task, option, num_envs=NUM) as env:
        assert env.observation_manager.group_obs_dim["policy"] == (size,)
        obs = env.step(torch.ones(NUM, len(hand.motors)))[0]["policy"]
        assert torch.isfinite(obs).all() and (obs.abs() <= 5.0).all()
        if name == "shadow":
            torques = obs[:, -20 - 54 : -20 - 30]
            driven = [env.scene["robot"].joint_names.index(joint) for joint in ("FFJ2", "MFJ2", "RFJ2")]
            assert (torques[:, driven] > 0.1).all(), "motors that bend a finger are felt in its joint"


@pytest.mark.parametrize(
    ("engine", "choice", "coupled"),
    [("ovphysx", "stiff", True), ("ovphysx", "reference", False), ("newton_mjwarp", "stiff", True)],
)
def test_only_stiff_tendons_couple_the_distal_joints(engine, choice, coupled):
    """J1 bends to 1.2 rad, and J0, without a motor, shall keep within 0.142 rad of 1.142 J1, also under a load."""
    hand = HANDS["shadow"]
    options = (
        f"physics={engine}",
        f"env.tendon_stiffness={choice}",
        "env.terminations.cube_away.params.distance=1000.0",
    )
    with make_env(hand.task, *options, num_envs=NUM) as env:
        robot = env.scene["robot"]
        if engine == "ovphysx":
            read_back = robot.data.fixed_tendon_limit_stiffness.torch
            stiffness = torch.full_like(read_back, {"stiff": 30.0, "reference": 1.491e-3}[choice])
            torch.testing.assert_close(read_back, stiffness, rtol=1e-3, atol=0)
        place_cube(env, (0.5, 0.0, 0.0))
        # all other joints to zero, where fingers do not touch each other
        low, high = limits(hand, hand.motors)
        action = (-(high + low) / (high - low)).repeat(NUM, 1)
        near, far = ([robot.joint_names.index(f"{finger}J{joint}") for finger in FINGERS] for joint in (1, 0))
        action[:, [hand.motors.index(f"{finger}J1") for finger in FINGERS]] = 2.0 * 1.2 / 1.571 - 1.0
        # what the cube's weight at a fingertip does, 31 mm beyond J0: it straightens every second hand's fingers
        torque = torch.zeros(NUM, 4, 3)
        torque[::2, :, 0] = -hand.mass * 9.81 * 0.031
        tips = [robot.body_names.index(f"{finger.lower()}distal") for finger in FINGERS]
        robot.permanent_wrench_composer.set_forces_and_torques_index(torques=torque, body_ids=tips)
        for _ in range(90):
            env.step(action)
        angles = robot.data.joint_pos.torch
        assert (angles[:, near] > 1.1).all(), "the motors have bent J1"
        apart = (angles[:, far] - 0.00805 / 0.00705 * angles[:, near]).abs() - 0.001 / 0.00705
        if coupled:
            assert (apart[::2] < 0.005).all() and (apart[1::2] < 0.001).all(), apart
        else:
            assert (apart > 0.5).all() and (angles[:, far] < 0.32).all(), "J0 has not gone along"


def test_an_unknown_stiffness_of_tendons_is_refused():
    message = "tendon_stiffness 'soft' is none of stiff, reference"
    option = "env.tendon_stiffness=soft"
    with pytest.raises(UserError, match=message), make_env(HANDS["shadow"].task, option, num_envs=1):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDS)
def test_rewards_do_not_depend_on_how_a_step_is_divided(name):
    """Cubes fall freely, which is the same in both; nothing but the time step can change what they earn."""
    hand, totals = HANDS[name], []
    decimation = {"allegro": 4, "shadow": 2}[name]
    for overrides in ((), ("env.sim.dt=0.00416666667", f"env.decimation={2 * decimation}")):
        with make_env(hand.task, *overrides, num_envs=NUM, seed=3) as env:
            assert env.max_episode_length == 600 and env.step_dt == pytest.approx(hand.step_dt)
            place_cube(env, (0.0, 0.0, 0.2))
            total = torch.zeros(NUM)
            for _ in range(3):
                total += env.step(torch.full((NUM, len(hand.motors)), -1.0))[1]
            totals.append(total)
    torch.testing.assert_close(totals[1], totals[0], rtol=0.01, atol=0.02)
