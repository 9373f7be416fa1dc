"""Physical constants as the engines have them, against the specification's numbers: read back, or else measured.

The numbers are those of the reference tasks. What deviates from them on purpose has its reason in ``docs/physics.md``.
"""

import math
from contextlib import ExitStack

import pytest
import torch
from isaaclab.sim.utils import get_current_stage
from pxr import Usd, UsdPhysics, UsdShade

from epo_tasks.robots import anymal_c, unitree_a1
from support.constants import (
    GRAVITY,
    advance,
    angular_momentum,
    friction_of,
    momentum,
    on_physx,
    place,
    surface,
)
from support.envs import make_env
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

TASKS = {
    # a cube and a flat box, which does not tip over when friction stops it
    "kuka": ("Epo-Kuka-OneArm-Regrasp-v0", "env.own_objects=[[1,1,1],[2,2,1]]"),
    # the back of the hand looks up: a level plane
    "allegro": ("Epo-AllegroHand-Reorient-v0", "env.scene.robot.init_state.rot=[0.0,0.70710678,0.0,0.70710678]"),
    "shadow": ("Epo-ShadowHand-Reorient-v0",),
    "anymal": ("Epo-Anymal-Flat-v0",),
    "a1": ("Epo-A1-Flat-v0",),
    "humanoid": ("Epo-Humanoid-Run-v0",),
    "franka": ("Epo-Franka-CubeStack-v0",),
}
NUM = 2


WORLDS = [(name, engine) for engine in ENGINES for name in TASKS]
CHECKS: list[tuple] = []


def of(*names: str, engines: tuple[str, ...] = ENGINES):
    """Let a check run in the environments of these tasks; :func:`test_constant` opens each only once."""

    def add(check):
        CHECKS.extend((world, check) for world in WORLDS if world[0] in names and world[1] in engines)
        return check

    return add


@pytest.fixture(scope="module")
def opened():
    """Hand out the means to open one environment after the other; there can be one at a time."""
    with ExitStack() as stack:
        last = {}

        def open_world(name: str, engine: str):
            if (name, engine) not in last:
                stack.close()
                last.clear()
                task, *overrides = TASKS[name]
                last[name, engine] = stack.enter_context(make_env(task, f"physics={engine}", *overrides, num_envs=NUM))
                prepare(name, last[name, engine])
            return last[name, engine]

        yield open_world


def prepare(name: str, env) -> None:
    """Let the environment be stepped by :func:`advance`."""
    # every call of Newton's step is one step of the physics then
    env.sim.physics_manager.set_decimation(1)
    if name == "kuka":
        env.action_manager.get_term("push").reset()
        # on Newton an object may only move freely some time after it was placed
        env.command_manager.get_term("goal").steps_since_placed.fill_(1000)


# Stiffness [N m/rad], damping [N m s/rad], effort limit [N m], speed limit [rad/s], armature [kg m^2] and friction of a
# joint; None: the specification does not say.
FINGER_FRICTION = (0.0523963, 0.0150275, 0.00616359, 0.0227036)
SHADOW_EFFORTS = {"WRJ1": 4.785, "WRJ0": 2.175, "THJ4": 2.3722, "THJ3": 1.45, "THJ2": 0.99, "THJ1": 0.99, "THJ0": 0.81}
HUMANOID = {
    "abdomen_z": (20.0, 5.0, 0.02),
    "abdomen_y": (20.0, 5.0, 0.01),
    "abdomen_x": (10.0, 5.0, 0.01),
    "hip_x": (10.0, 5.0, 0.01),
    "hip_z": (10.0, 5.0, 0.01),
    "hip_y": (20.0, 5.0, 0.01),
    "knee": (5.0, 0.1, 0.007),
    "ankle_y": (2.0, 1.0, 0.006),
    "ankle_x": (2.0, 1.0, 0.006),
    "shoulder1": (10.0, 5.0, 0.01),
    "shoulder2": (10.0, 5.0, 0.01),
    "elbow": (2.0, 1.0, 0.006),
}


def kuka_joint(name: str, newton: bool) -> tuple:
    if name.startswith("iiwa7"):
        return (40.0, 5.0, 300.0, 10.0, 0.0, 0.025)
    friction = 0.035 if name.startswith("thumb") else FINGER_FRICTION[int(name[-1])]
    # the reference has gains of 40 and 5 and no armature
    gains = (3.0, 0.3) if newton else (40.0, 5.0)
    return (*gains, 0.35, 6.283, 0.002, friction)


def shadow_joint(name: str, newton: bool) -> tuple:
    if name.startswith("WR"):
        return (5.0, 0.5, SHADOW_EFFORTS[name], None, 0.005, 0.001)
    if name in ("FFJ0", "MFJ0", "RFJ0", "LFJ0"):
        return (0.0, 0.1, None, None, 0.001, 0.001)
    finger = 0.7245 if name.endswith("1") else 0.9
    return (1.0, 0.1, SHADOW_EFFORTS.get(name, finger), None, 0.001, 0.001)


def humanoid_joint(name: str, newton: bool) -> tuple:
    stiffness, damping, armature = HUMANOID[name.removeprefix("left_").removeprefix("right_")]
    return (stiffness, damping, None, None, armature, 0.0)


def franka_joint(name: str, newton: bool) -> tuple:
    if "finger" in name:
        # the reference has no armature, and 5000, 100 and 200 N on every engine
        return (1000.0, 50.0, 20.0, 0.2, 0.1, 0.0) if newton else (5000.0, 100.0, 200.0, 0.2, 0.3, 0.0)
    return (0.0, 0.0, *((87.0, 2.175) if name[-1] in "1234" else (12.0, 2.61)), 0.0, 0.0)


JOINTS = {
    "kuka": kuka_joint,
    "allegro": lambda name, newton: (3.0, 0.1, 0.5, None, 0.001, 0.01),
    "shadow": shadow_joint,
    "anymal": lambda name, newton: (85.0, 2.0, 80.0, 20.0, 0.0, 0.0),
    # torques are computed outside the engine
    "a1": lambda name, newton: (0.0, 0.0, None, None, 0.0, 0.0),
    "humanoid": humanoid_joint,
    "franka": franka_joint,
}


@of(*TASKS)
def drives_and_joints_are_the_specified_ones(name, env):
    robot = env.scene["robot"]
    fields = ("stiffness", "damping", "effort_limits", "vel_limits", "armature", "friction_coeff")
    for index, field in enumerate(fields):
        values = getattr(robot.data, f"joint_{field}").torch
        for joint, value in zip(robot.joint_names, values.T, strict=True):
            expected = JOINTS[name](joint, not on_physx(env))[index]
            if expected is not None:
                assert value.tolist() == pytest.approx([expected] * NUM, rel=1e-4), (joint, field)


@of(*TASKS)
def surfaces_are_the_specified_ones(name, env):
    """Friction 1 and no restitution, unless the task draws others: A1 flat has 0.8 at rest and 0.6 in motion."""
    movable = [asset for asset in ("object", "cube", "base_cube") if asset in env.scene.rigid_objects]
    dynamic = 0.6 if on_physx(env) else 0.8
    expected = torch.tensor([0.8, dynamic, 0.0] if name == "a1" else [1.0, 1.0, 0.0])
    for asset in ("robot", *movable):
        values = surface(env, asset)
        torch.testing.assert_close(values, expected.expand(len(values), 3))
    if on_physx(env):
        return
    # what does not move, too: table and ground
    model = env.sim.physics_manager.get_model()
    moving = torch.from_numpy(model.shape_body.numpy()) >= 0
    still = torch.from_numpy(model.shape_material_mu.numpy())[~moving]
    # Newton takes the larger friction of two surfaces, so that this ground leaves it to the robot
    torch.testing.assert_close(still, torch.full_like(still, 0.0 if name == "a1" else 1.0))
    assert (model.shape_material_kf.numpy() == 1000.0).all()


@of(*TASKS)
def every_shape_is_bound_to_a_surface(name, env):
    """Else an engine's default counts: 0.5 on ovphysx, and on Newton by chance the right one."""
    for root in ("/World/ground", "/World/envs/env_0"):
        for prim in Usd.PrimRange(get_current_stage().GetPrimAtPath(root)):
            if prim.HasAPI(UsdPhysics.CollisionAPI):
                material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0]
                assert material and material.GetPrim().HasAPI(UsdPhysics.MaterialAPI), prim.GetPath()


MASSES = {"allegro": 0.955, "shadow": 5.011, "anymal": 52.135, "humanoid": 40.844, "franka": 17.4519}
OBJECT_MASSES = {"kuka": (0.05, 0.2), "allegro": (0.10985,) * NUM, "shadow": (0.070875,) * NUM}


@of(*TASKS)
def masses_are_the_specified_ones(name, env):
    if name in MASSES:
        total = env.scene["robot"].data.body_mass.torch.sum(dim=1)
        assert total.tolist() == pytest.approx([MASSES[name]] * NUM, abs=1e-3)
    if name in OBJECT_MASSES:
        assert env.scene["object"].data.body_mass.torch.flatten().tolist() == pytest.approx(OBJECT_MASSES[name])


@of("kuka", "allegro", "shadow")
def object_in_free_flight_loses_half_of_its_spin_per_second_and_no_speed(name, env):
    box = env.scene["object"]
    place(env, "object", (0.0, -0.9, 2.0), linear=(1.0, 0.0, 0.0), spin=(0.0, 0.0, 20.0))
    velocity = advance(env, 24, lambda: box.data.root_com_vel_w.torch)
    rate = -(velocity[-1] / velocity[0]).log() / (24 * env.physics_dt)
    assert rate[:, 5].tolist() == pytest.approx([0.5] * NUM, abs=0.01), "angular damping"
    assert rate[:, 0].tolist() == pytest.approx([0.0] * NUM, abs=1e-3), "linear damping"
    fallen = velocity[-1, :, 2] - velocity[0, :, 2]
    assert fallen.tolist() == pytest.approx([-GRAVITY * 24 * env.physics_dt] * NUM, rel=1e-3)


@of("kuka", "allegro", "shadow")
def object_spins_at_64_radians_a_second_at_most(name, env):
    box = env.scene["object"]
    place(env, "object", (0.0, -0.9, 2.0), spin=(0.0, 0.0, 100.0))
    advance(env, 1)
    spin = box.data.root_com_vel_w.torch[:, 5]
    assert spin.tolist() == pytest.approx([64.0] * NUM, rel=0.01)


# Newton has no such limit
@of("kuka", "allegro", "shadow", engines=("ovphysx",))
def object_moves_at_a_kilometre_a_second_at_most(name, env):
    place(env, "object", (0.0, -0.9, 2.0), linear=(2000.0, 0.0, 0.0))
    advance(env, 1)
    speed = env.scene["object"].data.root_com_vel_w.torch[:, 0]
    assert speed.tolist() == pytest.approx([1000.0] * NUM, rel=1e-3)


@of("franka")
def cubes_are_those_of_the_specification(name, env):
    for cube, mass, inertia in (("cube", 0.125, 5.208e-5), ("base_cube", 0.343, 2.801e-4)):
        data = env.scene[cube].data
        assert data.body_mass.torch.flatten().tolist() == pytest.approx([mass] * NUM, rel=1e-4)
        tensor = data.body_inertia.torch.reshape(NUM, 3, 3)
        torch.testing.assert_close(tensor, (inertia * torch.eye(3)).expand(NUM, 3, 3), rtol=1e-3, atol=1e-7)


@of("franka")
def a_cube_in_free_flight_keeps_its_spin_and_falls(name, env):
    place(env, "cube", (0.8, 0.8, 2.5), linear=(1.0, 0.0, 0.0), spin=(0.0, 0.0, 20.0))
    velocity = advance(env, 24, lambda: env.scene["cube"].data.root_com_vel_w.torch)
    change = velocity[-1] - velocity[0]
    assert change[:, 5].tolist() == pytest.approx([0.0] * NUM, abs=0.02), "angular damping"
    assert change[:, 0].tolist() == pytest.approx([0.0] * NUM, abs=1e-3), "linear damping"
    assert change[:, 2].tolist() == pytest.approx([-GRAVITY * 24 * env.physics_dt] * NUM, rel=1e-3)


@of("franka")
def a_cube_slides_on_the_table_with_friction_1(name, env):
    cube = env.scene["base_cube"]
    place(env, "cube", (0.4, 0.4, 1.05))
    place(env, "base_cube", (0.1, -0.35, 1.06))
    advance(env, 20)
    start = cube.data.root_com_pos_w.torch.clone()
    push(cube, (0.6, 0.0, 0.0))
    way = advance(env, 20, lambda: cube.data.root_com_pos_w.torch - start)
    friction = 0.6**2 / (2.0 * GRAVITY * way[-1, :, 0])
    assert (friction > 0.9).all() and (friction < 1.12).all(), friction


@of("franka")
def no_gravity_acts_on_the_arm(name, env):
    """Without torques it stays where it is."""
    robot = env.scene["robot"]
    start = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=start)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(start))
    env.action_manager.reset(slice(None))
    advance(env, 60)
    assert (robot.data.joint_pos.torch - start).abs().max() < 1e-3


@of("kuka")
def object_slides_on_the_table_with_friction_1(name, env):
    box = env.scene["object"]
    place(env, "object", (0.0, 0.0, 0.555))
    advance(env, 20)
    start = box.data.root_com_pos_w.torch.clone()
    push(box, (0.8, 0.0, 0.0))
    way = advance(env, 20, lambda: box.data.root_com_pos_w.torch - start)
    # the way to a stop is v^2 / (2 mu g)
    friction = 0.8**2 / (2.0 * GRAVITY * way[-1, :, 0])
    assert (friction > 0.93).all() and (friction < 1.1).all(), friction
    # MuJoCo lifts what slides
    assert (way[:, :, 2] < (0.001 if on_physx(env) else 0.008)).all(), way[:, :, 2].amax(dim=0)


@of("allegro")
def object_slides_on_the_hand_with_friction_1(name, env):
    box = env.scene["object"]
    # on the middle of the palm's back, 30 mm above the hand's origin
    place(env, "object", (-0.0475, -0.11783, 0.498 + 0.0297 + 0.0325))
    advance(env, 10)
    push(box, (0.0, 0.4, 0.0))
    mass = box.data.body_mass.torch
    friction = friction_of(env, mass.flatten(), lambda: mass * box.data.root_com_vel_w.torch[:, :3], steps=2)
    assert friction.tolist() == pytest.approx([1.0] * NUM, abs=0.05)


# MuJoCo stops light feet within a step
@of("anymal", "a1", "humanoid", engines=("ovphysx",))
def feet_slide_on_the_ground_with_the_friction_of_the_task(name, env):
    """A standing robot is pushed to the side so fast that all feet slip."""
    robot = stand(env)
    push(robot, (0.0, 6.0, 0.0))
    friction = friction_of(env, robot.data.body_mass.torch.sum(dim=1), lambda: momentum(robot), steps=1)
    assert friction.tolist() == pytest.approx([{"a1": 0.6}.get(name, 1.0)] * NUM, rel=0.01)


@of("a1")
def motors_of_a1_push_with_all_of_their_torque(name, env):
    """The engine limits nothing below the motors' 33.5 N m: twice the torque is twice the acceleration."""
    robot = env.scene["robot"]
    gained = []
    for torque in (16.5, 33.0):
        stand(env, steps=0)
        place(env, "robot", (0.0, 0.0, 3.0))
        robot.set_joint_effort_target_index(target=torch.full((NUM, robot.num_joints), torque))
        gained.append(advance(env, 1, lambda: robot.data.joint_vel.torch)[-1])
    robot.set_joint_effort_target_index(target=torch.zeros(NUM, robot.num_joints))
    assert (gained[0].amax(dim=1) > 5.0).all()
    torch.testing.assert_close(gained[1], 2.0 * gained[0], rtol=0.02, atol=0.01)


@of("anymal", "a1")
def a_robot_slides_on_its_back_with_the_friction_of_the_task(name, env):
    """Upside down, legs in the air."""
    robot = stand(env, steps=0)
    place(env, "robot", (0.0, 0.0, {"anymal": 0.2, "a1": 0.1}[name]), upside_down=True)
    advance(env, 60)
    push(robot, (1.0, 0.0, 0.0))
    steps = round(0.04 / env.physics_dt)
    friction = friction_of(env, robot.data.body_mass.torch.sum(dim=1), lambda: momentum(robot), steps=steps)
    expected = {"a1": 0.6 if on_physx(env) else 0.8}.get(name, 1.0)
    assert friction.tolist() == pytest.approx([expected] * NUM, rel=0.02)


@of("anymal", "a1")
def a_robot_in_free_flight_keeps_its_momentum(name, env):
    """Nothing damps its links. The humanoid's damping of 0.01 is less than what an engine's errors change."""
    facts = {"anymal": anymal_c, "a1": unitree_a1}[name].FACTS
    robot = stand(env, steps=0)
    place(env, "robot", (0.0, 0.0, 5.0), linear=(0.5, 0.0, 0.0), spin=(0.0, 0.0, 3.0))
    steps = round(0.3 / env.physics_dt)
    seen = advance(env, steps, lambda: torch.cat([momentum(robot), angular_momentum(robot, facts)], dim=-1))
    rate = -(seen[-1] / seen[0]).log() / (steps * env.physics_dt)
    error = 0.003 if on_physx(env) else 0.015
    assert rate[:, 0].tolist() == pytest.approx([0.0] * NUM, abs=error), "linear damping"
    assert rate[:, 5].tolist() == pytest.approx([0.0] * NUM, abs=error), "angular damping"


@of("kuka")
def object_does_not_bounce(name, env):
    box = env.scene["object"]
    place(env, "object", (0.0, 0.0, 0.655))
    height = advance(env, 40, lambda: box.data.root_com_pos_w.torch[:, 2] - 0.555)
    touched = (height < 1e-3).int().argmax(dim=0)
    for row, step in enumerate(touched.tolist()):
        assert height[step:, row].max() < 0.002, "a restitution of 0.15 would throw it up by 2 mm"


# Linear and angular damping [1/s], fastest motion [m/s] and spin [rad/s], and fastest separation of overlaps [m/s]
BODIES = {
    "kuka": (0.01, 0.01, 1000.0, 64.0, 1000.0),
    "allegro": (0.0, 0.01, 1000.0, 64.0, 1000.0),
    "shadow": (0.0, 0.01, 1000.0, 64.0, 1000.0),
    "anymal": (0.0, 0.0, 1000.0, 64.0, 100.0),
    "a1": (0.0, 0.0, 1000.0, 1000.0, 1.0),
    "humanoid": (0.0, 0.01, 1000.0, 100.0, 10.0),
    "franka": (0.0, 0.0, 1000.0, 64.0, 1000.0),
}


# Newton has no such numbers
@of(*TASKS, engines=("ovphysx",))
def links_carry_what_physx_does_not_report(name, env):
    fields = ("linearDamping", "angularDamping", "maxLinearVelocity", "maxAngularVelocity", "maxDepenetrationVelocity")
    linear, angular, speed, spin, separation = BODIES[name]
    expected = (linear, angular, speed, math.degrees(spin), separation)
    stage = get_current_stage()
    for link in env.scene["robot"].body_names:
        prim = stage.GetPrimAtPath(f"/World/envs/env_0/Robot/{link}")
        values = [prim.GetAttribute(f"physxRigidBody:{field}").Get() for field in fields]
        assert values == pytest.approx(expected, rel=1e-5), link


def push(asset, velocity: tuple[float, float, float]) -> None:
    """Set all parts of an asset in motion [m/s]."""
    asset.write_root_com_velocity_to_sim_index(root_velocity=torch.tensor([*velocity, 0.0, 0.0, 0.0]).repeat(NUM, 1))
    if hasattr(asset, "num_joints"):
        asset.write_joint_velocity_to_sim_index(velocity=torch.zeros(NUM, asset.num_joints))


def stand(env, steps: int = 40):
    """Return the robot in its default pose, after so many steps."""
    robot = env.scene["robot"]
    env.action_manager.process_action(torch.zeros(NUM, env.action_manager.total_action_dim))
    position = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=position)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position))
    place(env, "robot", tuple(robot.data.default_root_pose.torch[0, :3].tolist()))
    advance(env, steps)
    return robot


@pytest.mark.parametrize(
    ("world", "check"),
    [
        pytest.param(world, check, id=f"{'-'.join(world)}-{check.__name__}")
        for world, check in sorted(CHECKS, key=lambda item: WORLDS.index(item[0]))
    ],
)
def test_constant(opened, world, check):
    check(world[0], opened(*world))
