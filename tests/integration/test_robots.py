"""Seven robots on both kit-less engines: what arrives in the engine, and how it behaves there."""

import math

import numpy as np
import pytest
import torch
from isaaclab_ov.physics import OvPhysxCfg

from support.robots import FIXED, ROBOTS, scene_with
from support.simulate import ENGINES, aim, set_joints, simulate

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=[(engine, robot) for engine in ENGINES for robot in ROBOTS], ids="-".join)
def crowd(request):
    """Sixteen robots of one kind on the ground."""
    engine, name = request.param
    module, cfg, newton, dt = ROBOTS[name]
    with simulate(engine, scene_with(cfg, 16), newton, dt) as world:
        yield name, module.FACTS, world


def test_engine_reads_masses_inertias_limits_and_order(crowd):
    _, facts, world = crowd
    data, robot = world.scene["robot"].data, world.scene["robot"]
    assert tuple(robot.joint_names) == facts.joint_names
    masses = dict(zip(robot.body_names, data.body_mass.torch[0].tolist(), strict=True))
    inertias = dict(zip(robot.body_names, data.body_inertia.torch[0].reshape(-1, 3, 3).numpy(), strict=True))
    assert set(masses) == set(facts.link_names)
    for link in facts.links:
        assert masses[link.name] == pytest.approx(link.mass, rel=1e-4)
        # principal moments, because engines differ in the frame they report the tensor in
        expected = np.linalg.eigvalsh(link.inertia_matrix)
        np.testing.assert_allclose(np.linalg.eigvalsh(inertias[link.name]), expected, rtol=1e-3, atol=1e-9)
    for joint, (lower, upper) in zip(facts.moving_joints, data.joint_pos_limits.torch[0].tolist(), strict=True):
        if joint.upper - joint.lower < 4 * math.pi:
            assert (lower, upper) == (pytest.approx(joint.lower, abs=1e-4), pytest.approx(joint.upper, abs=1e-4))
        else:
            assert lower < -2 * math.pi and upper > 2 * math.pi


def test_forward_kinematics_in_the_engine_to_a_millimetre(crowd):
    name, facts, world = crowd
    robot = world.scene["robot"]
    world.reset()
    rng = np.random.default_rng(3)
    poses = [
        {joint.name: rng.uniform(max(joint.lower, -1), min(joint.upper, 1)) for joint in facts.moving_joints}
        for _ in range(robot.num_instances)
    ]
    set_joints(robot, torch.tensor([[pose[joint] for joint in robot.joint_names] for pose in poses]))
    world.sim.forward()
    world.scene.update(0.0)
    root_pos, root_quat = robot.data.root_link_pos_w.torch, robot.data.root_link_quat_w.torch
    watched = [*facts.extras["end_links"]] + (["iiwa7_link_7"] if name == "kuka_allegro" else [])
    for link in watched:
        position = robot.data.body_link_pos_w.torch[:, robot.body_names.index(link)] - root_pos
        for i, pose in enumerate(poses):
            x, y, z, w = root_quat[i].tolist()
            expected = rotate((x, y, z, w), facts.link_poses(pose)[link][1])
            np.testing.assert_allclose(position[i], expected, atol=1e-3, err_msg=link)


def rotate(quat: tuple[float, float, float, float], vector: np.ndarray) -> np.ndarray:
    x, y, z, w = quat
    axis = np.array([x, y, z])
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def test_default_pose_is_held(crowd):
    name, _, world = crowd
    robot = world.scene["robot"]
    world.reset()
    world.step(round(2.0 / world.sim.cfg.dt))
    height = robot.data.root_pos_w.torch[:, 2]
    assert torch.isfinite(robot.data.joint_pos.torch).all()
    if name == "unitree_a1":
        assert ((height - 0.28).abs() < 0.02).all(), height
    elif name == "anymal_c":
        assert ((height - 0.51).abs() < 0.02).all(), height
    elif name in FIXED:
        error = (robot.data.joint_pos.torch - robot.data.default_joint_pos.torch).abs().max()
        assert error < 0.01, error


def test_tendons_pull_the_shadow_hands_distal_joints_along(crowd):
    """0.00705 q_J0 - 0.00805 q_J1 stays within +-0.001; J1 bends and stretches, J0 has no motor."""
    name, _, world = crowd
    if name != "shadow_hand":
        pytest.skip("no tendons")
    robot = world.scene["robot"]
    fingers = ("FF", "MF", "RF", "LF")
    near, far = ([robot.joint_names.index(f"{finger}J{joint}") for finger in fingers] for joint in (1, 0))
    world.reset()
    target = robot.data.default_joint_pos.torch.clone()
    bend = torch.linspace(0.3, 1.2, robot.num_instances).unsqueeze(-1)
    for goal in (bend, 0.1 * bend):
        target[:, near] = goal
        aim(robot, target)
        world.step(150)
        angles = robot.data.joint_pos.torch
        low, high = ((0.00805 * angles[:, near] + slack) / 0.00705 for slack in (-0.001, 0.001))
        torch.testing.assert_close(angles[:, near], target[:, near], atol=0.1, rtol=0)
        assert (angles[:, far] > low - 0.03).all() and (angles[:, far] < high + 0.03).all()


@pytest.mark.parametrize("steps", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_actions_leave_everything_finite(crowd, steps):
    """A thousand of them take Newton a minute a robot: ``-m slow``. PhysX always does them all."""
    _, _, world = crowd
    steps = 1000 if isinstance(world.sim.cfg.physics, OvPhysxCfg) else steps
    robot = world.scene["robot"]
    world.reset()
    generator = torch.Generator().manual_seed(0)
    limits = robot.data.joint_pos_limits.torch.clamp(-math.pi, math.pi)
    lower, upper = limits[..., 0], limits[..., 1]
    finite, fastest = torch.tensor(True), torch.tensor(0.0)
    for _ in range(steps):
        aim(robot, lower + torch.rand(lower.shape, generator=generator) * (upper - lower))
        world.step()
        state = torch.cat([robot.data.joint_pos.torch, robot.data.joint_vel.torch, robot.data.root_state_w.torch], -1)
        finite &= torch.isfinite(state).all()
        fastest = torch.maximum(fastest, robot.data.joint_vel.torch.abs().max())
    assert finite
    assert fastest < 1000.0, f"a joint reached {fastest:.0f} rad/s"
    distance = (robot.data.root_pos_w.torch - world.scene.env_origins).norm(dim=-1)
    assert (distance < 20.0).all()
