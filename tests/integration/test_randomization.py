"""``env.randomize=true``: what is drawn lies in the ranges of the specification, and the engines know of it."""

import math

import pytest
import torch

from epo_tasks.robots import anymal_c
from support.envs import make_env
from support.in_hand import HANDS, limits

pytestmark = pytest.mark.integration

NUM = 48
BOTH = ["ovphysx", pytest.param("newton_mjwarp", marks=pytest.mark.slow)]


def masses(robot, facts) -> torch.Tensor:
    """Return masses as factors of those in the facts."""
    return robot.data.body_mass.torch / torch.tensor([facts.link(name).mass for name in robot.body_names])


def check_spread(factors: torch.Tensor, low: float, high: float, mean: float) -> None:
    assert low - 1e-4 <= factors.min() and factors.max() <= high + 1e-4
    assert factors.mean().item() == pytest.approx(mean, rel=0.05)
    assert factors.min() < low + 0.1 * (high - low) and factors.max() > high - 0.1 * (high - low)


def let_cubes_fall(env, seconds: float) -> torch.Tensor:
    """Return the accelerations of cubes that fall freely next to the hand [m/s^2]."""
    cube = env.scene["object"]
    pose = torch.zeros(NUM, 7)
    pose[:, 6] = 1.0
    pose[:, :3] = env.scene.env_origins + torch.tensor([0.3, 0.3, 1.0])
    cube.write_root_pose_to_sim_index(root_pose=pose)
    cube.write_root_velocity_to_sim_index(root_velocity=torch.zeros(NUM, 6))
    steps = round(seconds / env.physics_dt)
    for _ in range(steps):
        env.scene.write_data_to_sim()
        env.sim.step(render=False)
        env.scene.update(env.physics_dt)
    return cube.data.root_com_vel_w.torch[:, :3] / (steps * env.physics_dt)


@pytest.mark.parametrize("engine", BOTH)
def test_a_hand_and_its_cube(engine):
    hand = HANDS["shadow"]
    with make_env(hand.task, f"physics={engine}", "env.randomize=true", "env.full_state=true", num_envs=NUM) as env:
        robot, cube = env.scene["robot"], env.scene["object"]
        check_spread(masses(robot, hand.facts), 0.5, 1.5, 1.0)
        check_spread(cube.data.body_mass.torch.flatten() / hand.mass, 0.5, 1.5, 1.0)
        driven = [robot.joint_names.index(name) for name in hand.motors]
        stiffness = torch.tensor([5.0 if name.startswith("WR") else 1.0 for name in hand.motors])
        # the mean of a log-uniform number is (b - a) / ln(b / a)
        factors = robot.data.joint_stiffness.torch[:, driven] / stiffness
        check_spread(factors, 0.75, 1.5, 0.75 / math.log(2.0))
        factors = robot.data.joint_damping.torch[:, driven] / (0.1 * stiffness)
        check_spread(factors, 0.3, 3.0, 2.7 / math.log(10.0))
        low, high = limits(hand, tuple(robot.joint_names))
        shift = robot.data.joint_pos_limits.torch - torch.stack([low, high], dim=-1)
        assert shift.std().item() == pytest.approx(0.01, rel=0.1) and shift.mean().abs() < 0.002
        if engine == "ovphysx":
            check_spread(robot.data.fixed_tendon_limit_stiffness.torch / 30.0, 0.75, 1.5, 0.75 / math.log(2.0))
        env.step(torch.zeros(NUM, len(hand.motors)))
        noise = env.action_manager.action
        assert noise.std().item() == pytest.approx(math.hypot(0.05, 0.015), rel=0.15)
        first, second = (env.observation_manager.compute_group("policy") for _ in range(2))
        moved = (first - second)[:, :24]
        assert moved.std().item() == pytest.approx(0.002 * math.sqrt(2.0), rel=0.1), "both drew white noise"
        assert ((first - second) != 0.0).any(dim=0)[:-20].all(), "in every block, optional ones too"

        down = torch.tensor([0.0, 0.0, -9.81])
        torch.testing.assert_close(let_cubes_fall(env, 0.1), down.expand(NUM, 3), atol=0.05, rtol=0)
        env.event_manager.apply(mode="interval", dt=721 * env.step_dt)
        change = let_cubes_fall(env, 0.1) - down
        assert change.std(dim=1).mean() > 0.02 and change.abs().max() < 2.0
        assert (change.std(dim=0).max() < 0.01) == (engine == "ovphysx"), "one gravity for all on PhysX, many on Newton"
        let_cubes_fall(env, 1.5)
        edges = 2.0 * cube.data.root_link_pos_w.torch[:16, 2]
        expected = hand.edge * torch.linspace(0.95, 1.05, 16)
        torch.testing.assert_close(edges, expected, atol=5e-4, rtol=0)


@pytest.mark.parametrize("engine", BOTH)
def test_a_legged_robot_gets_it_bit_by_bit(engine):
    with make_env("Epo-Anymal-Flat-v0", f"physics={engine}", "env.randomize=true", num_envs=NUM) as env:
        robot = env.scene["robot"]
        check_spread(masses(robot, anymal_c.FACTS), 0.5, 1.5, 1.0)
        # PhysX knows no limits beyond a whole turn, which hips and knees have
        abduction = [index for index, name in enumerate(robot.joint_names) if name.endswith("HAA")]
        default = robot.data.joint_pos_limits.torch[:, abduction].clone()
        assert (robot.data.joint_stiffness.torch == 85.0).all(), "nothing at first"
        for steps, share in ((1500, 0.5), (9000, 1.0)):
            env.common_step_counter = steps
            env._sim_step_counter = steps * env.cfg.decimation
            env.reset()
            check_spread(robot.data.joint_stiffness.torch / 85.0, 1.0 - 0.5 * share, 1.0 + 0.5 * share, 1.0)
            shift = robot.data.joint_pos_limits.torch[:, abduction] - default
            assert shift.std().item() == pytest.approx(0.01 * share, rel=0.1)
        for _ in range(3):
            observation = env.step(torch.zeros(NUM, 12))[0]["policy"]
        assert torch.isfinite(observation).all()
