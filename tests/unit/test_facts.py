"""Robot facts against numbers that were computed elsewhere: by pinocchio, by coal, or printed in the specification."""

from itertools import combinations

import coal
import numpy as np
import pinocchio
import pytest

from epo_tasks.robots.facts import RobotFacts, load_facts, quaternion, rotation_matrix
from support.pinocchio_model import pinocchio_model

pytestmark = pytest.mark.unit

ROBOTS = {
    "unitree_a1": (17, 12, 12.454),
    "anymal_c": (17, 12, 52.135),
    "dmc_humanoid": (25, 21, 40.844),
    "allegro_hand": (21, 16, 0.955),
    "shadow_hand": (25, 24, 5.011),
    "kuka_allegro": (27, 23, 28.926),
    "franka_panda": (11, 9, 17.4519),
}
"""Number of links, number of moving joints, mass [kg]."""


def random_pose(facts: RobotFacts, rng: np.random.Generator) -> dict[str, float]:
    return {joint.name: rng.uniform(max(joint.lower, -3), min(joint.upper, 3)) for joint in facts.moving_joints}


@pytest.mark.parametrize("name", ROBOTS)
def test_size_and_mass_are_those_of_the_specification(name):
    facts = load_facts(name)
    links, joints, mass = ROBOTS[name]
    assert (len(facts.links), len(facts.joint_names)) == (links, joints)
    assert facts.total_mass == pytest.approx(mass, abs=5e-4)


@pytest.mark.parametrize("name", ROBOTS)
def test_forward_kinematics_equals_pinocchio(name):
    facts = load_facts(name)
    model = pinocchio_model(facts)
    data = model.createData()
    rng = np.random.default_rng(0)
    for _ in range(5):
        pose = random_pose(facts, rng)
        q = np.array([pose[joint] for joint in model.names[1:]])
        pinocchio.framesForwardKinematics(model, data, q)
        for link, (rotation, position) in facts.link_poses(pose).items():
            frame = data.oMf[model.getFrameId(link)]
            np.testing.assert_allclose(position, frame.translation, atol=1e-9)
            np.testing.assert_allclose(rotation, frame.rotation, atol=1e-9)


@pytest.mark.parametrize("name", ROBOTS)
def test_merging_fixed_links_keeps_mass_matrix_and_kinematics(name):
    facts = load_facts(name)
    merged = facts.merge_fixed()
    assert len(merged.links) == len(merged.joint_names) + 1
    rng = np.random.default_rng(1)
    pose = random_pose(facts, rng)
    matrices = []
    for robot in (facts, merged):
        model = pinocchio_model(robot)
        q = np.array([pose[joint] for joint in model.names[1:]])
        matrices.append(pinocchio.crba(model, model.createData(), q))
    np.testing.assert_allclose(matrices[1], matrices[0], rtol=1e-9, atol=1e-12)


def test_merged_palm_body_is_that_of_the_reference():
    facts = load_facts("kuka_allegro")
    palm, expected = facts.merge_fixed().link("iiwa7_link_7"), facts.extras["merged_palm_body"]
    assert palm.mass == pytest.approx(expected["mass"])
    np.testing.assert_allclose(palm.com, expected["com"], rtol=1e-5)
    np.testing.assert_allclose(palm.inertia, expected["inertia"], rtol=1e-5)


@pytest.mark.parametrize("scene", ["zero_at_origin", "one_arm_default", "two_arm_0_default", "two_arm_1_default"])
def test_arm_check_points_to_a_millimetre(scene):
    facts = load_facts("kuka_allegro")
    extras = facts.extras
    root, turn, pose = np.zeros(3), np.eye(3), {}
    if scene == "one_arm_default":
        root, pose = np.array(extras["default_root_pos"]), extras["default_joint_pos"]
    elif scene.startswith("two_arm"):
        variant = extras["variants"][scene.removesuffix("_default")]
        x, y, z, w = variant["root_quat_xyzw"]
        root, pose = np.array(variant["root_pos"]), variant["joint_pos"]
        turn = pinocchio.Quaternion(w, x, y, z).toRotationMatrix()
    # the published check points have the thumb at zero, below its limit
    poses = facts.link_poses(pose | {"thumb_joint_0": 0.0})
    points = {name: poses[name] for name in poses} | {
        point: (poses[offset["link"]][0], poses[offset["link"]][0] @ offset["xyz"] + poses[offset["link"]][1])
        for point, offset in extras["frame_offsets"].items()
    }
    for name, expected in extras["fk_checks"][scene].items():
        np.testing.assert_allclose(root + turn @ points[name][1], expected, atol=1e-3, err_msg=name)


@pytest.mark.parametrize("pose", ["zero_at_origin", "arbitrary_at_origin", "task_default"])
def test_franka_check_points_to_a_millimetre(pose):
    facts = load_facts("franka_panda")
    extras, checks = facts.extras, dict(facts.extras["fk_checks"][pose])
    at_home = pose == "task_default"
    joints = checks.pop("joint_pos", extras["default_joint_pos"] if at_home else {})
    root = np.array(extras["default_root_pos"]) if at_home else np.zeros(3)
    poses = facts.link_poses(joints)
    points = {name: position for name, (_, position) in poses.items()} | {
        point: poses[offset["link"]][0] @ offset["xyz"] + poses[offset["link"]][1]
        for point, offset in extras["frame_offsets"].items()
    }
    if "hand_quat_xyzw" in checks:
        expected, found = np.array(checks.pop("hand_quat_xyzw")), quaternion(poses["panda_hand"][0])
        np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-4)
    for name, expected in checks.items():
        np.testing.assert_allclose(root + points[name], expected, atol=1e-3, err_msg=name)


def test_franka_merged_hand_is_that_of_the_facts():
    facts = load_facts("franka_panda")
    merged, expected = facts.merge_fixed().link("panda_link7"), facts.extras["merged_hand_body"]
    assert merged.mass == pytest.approx(expected["mass"])
    np.testing.assert_allclose(merged.com, expected["com"], rtol=1e-4)
    np.testing.assert_allclose(merged.inertia, expected["inertia"], rtol=1e-4)


def test_franka_mujoco_fingers_change_the_fingers_only():
    plain, varied = load_facts("franka_panda"), load_facts("franka_panda").with_variant("mujoco_fingers")
    assert plain.joints[:8] == varied.joints[:8]
    finger = varied.joints[-1]
    assert (finger.drive_stiffness, finger.drive_damping, finger.effort, finger.armature) == (1000.0, 50.0, 20.0, 0.1)


@pytest.mark.parametrize(
    ("robot", "link", "expected"),
    [
        ("unitree_a1", "FL_foot", (0.168, 0.161, -0.282)),
        ("unitree_a1", "RL_foot", (-0.255, 0.160, -0.274)),
        ("anymal_c", "LF_FOOT", (0.461, 0.317, -0.533)),
    ],
)
def test_foot_frames_in_the_default_pose(robot, link, expected):
    facts = load_facts(robot)
    position = facts.link_poses(facts.extras["default_joint_pos"])[link][1]
    np.testing.assert_allclose(position, expected, atol=1e-3)


def test_allegro_index_tip_and_humanoid_head():
    np.testing.assert_allclose(load_facts("allegro_hand").link_poses()["index_tip"][1], (0, 0.0553, 0.1334), atol=1e-3)
    humanoid = load_facts("dmc_humanoid")
    poses = humanoid.link_poses()
    assert poses["head"][1][2] == pytest.approx(0.19)
    lowest = min(
        (poses[link.name][0] @ shape.xyz + poses[link.name][1])[2] - shape.size["radius"]
        for link in humanoid.links
        if link.name.endswith("_foot")
        for shape in link.shapes
    )
    assert -lowest == pytest.approx(1.285, abs=1e-3), "feet touch at torso height 1.285"


def test_raised_ankles_leave_the_standing_foot_where_it_was():
    from epo_tasks.robots.dmc_humanoid import DMC_FACTS, FACTS

    points = []
    for facts, height in ((DMC_FACTS, 0.04), (FACTS, 0.08)):
        offset = facts.extras["frame_offsets"]["left_foot"]
        assert -offset[2] == pytest.approx(height)
        rotation, position = facts.link_poses()["left_foot"]
        points.append([rotation @ np.array(point) + position for point in (offset, facts.link("left_foot").com)])
    np.testing.assert_allclose(*points, atol=1e-12)


def test_variant_changes_what_it_names_and_nothing_else():
    plain, varied = load_facts("dmc_humanoid"), load_facts("dmc_humanoid").with_variant("isaac_gym_reference")
    joints = {joint.name: joint for joint in varied.joints}
    assert joints["right_hip_y"].effort == 135.0
    assert (joints["right_hip_y"].lower, joints["right_hip_y"].upper) == (-2.0943951, 0.785398163)
    assert joints["left_knee"].armature == 0.007
    assert np.linalg.norm(joints["left_shoulder1"].axis) == pytest.approx(1.0)
    assert varied.links == plain.links
    assert [joint.xyz for joint in varied.joints] == [joint.xyz for joint in plain.joints]


def test_quaternion_inverts_rotation_matrix():
    rng = np.random.default_rng(2)
    for rpy in [*rng.uniform(-np.pi, np.pi, (20, 3)), (np.pi, 0, 0), (0, np.pi / 2, 0), (0, 0, np.pi)]:
        rotation = rotation_matrix(tuple(rpy))
        x, y, z, w = quaternion(rotation)
        np.testing.assert_allclose(pinocchio.Quaternion(w, x, y, z).toRotationMatrix(), rotation, atol=1e-9)


def coal_shape(shape):
    size = shape.size
    if shape.type == "box":
        return coal.Box(size["x"], size["y"], size["z"])
    if shape.type == "sphere":
        return coal.Sphere(size["radius"])
    return {"capsule": coal.Capsule, "cylinder": coal.Cylinder}[shape.type](size["radius"], size["length"])


def placed_shapes(facts: RobotFacts, pose: dict[str, float]) -> list[tuple]:
    """Return link, shape and place of everything that collides, in the root's frame."""
    poses = facts.link_poses(pose)
    placed = []
    for link in facts.links:
        rotation, position = poses[link.name]
        for shape in link.shapes:
            turn = rotation @ rotation_matrix(shape.rpy)
            place = coal.Transform3s(turn, rotation @ np.array(shape.xyz) + position)
            placed.append((link.name, coal_shape(shape), place))
    return placed


@pytest.mark.parametrize("finger", ["index", "middle", "ring", "thumb"])
def test_allegro_fingertips_reach_as_far_as_those_of_the_reference(finger):
    """62.2 mm beyond the last joint, the thumb 77.1 mm: the distance to a wall one metre away tells."""
    from epo_tasks.robots.allegro_hand import FACTS

    pose = random_pose(FACTS, np.random.default_rng(4))
    rotation, joint = FACTS.link_poses(pose)[f"{finger}_link_3"]
    along = rotation[:, 2]
    wall = coal.Halfspace(-along, -(along @ joint + 1.0))
    reach = {
        link: 1.0 - coal.distance(shape, place, wall, coal.Transform3s(), coal.DistanceRequest(), coal.DistanceResult())
        for link, shape, place in placed_shapes(FACTS, pose)[::-1]
        if link in (f"{finger}_link_3", f"{finger}_tip")
    }
    expected = 0.0771 if finger == "thumb" else 0.0622
    assert max(reach.values()) == reach[f"{finger}_tip"] == pytest.approx(expected, abs=5e-5)
    # the frame that observations report is the centre of the round end
    tip, radius = FACTS.link_poses(pose)[f"{finger}_tip"][1], FACTS.link(f"{finger}_tip").shapes[0].size["radius"]
    assert along @ (tip - joint) == pytest.approx(expected - radius, abs=5e-5)


@pytest.mark.parametrize("finger", ["index", "thumb"])
def test_an_allegro_fingertips_mass_is_spread_over_its_capsule(finger):
    from epo_tasks.robots.allegro_hand import FACTS

    tip = FACTS.link(f"{finger}_tip")
    capsule = tip.shapes[0]
    assert tip.mass == load_facts("allegro_hand").link(tip.name).mass
    inertia = pinocchio.Inertia.FromCapsule(tip.mass, capsule.size["radius"], capsule.size["length"])
    inertia = pinocchio.SE3(rotation_matrix(capsule.rpy), np.array(capsule.xyz)).act(inertia)
    np.testing.assert_allclose(tip.com, inertia.lever, atol=1e-9)
    np.testing.assert_allclose(tip.inertia_matrix, inertia.inertia, atol=1e-12)


def test_the_cube_starts_above_the_outstretched_allegro_hand():
    """However it is turned: the ball around a cube of 65 mm touches nothing."""
    from epo_tasks.robots.allegro_hand import FACTS

    x, y, z, w = FACTS.extras["default_root_quat_xyzw"]
    turn = pinocchio.Quaternion(w, x, y, z).toRotationMatrix()
    centre = turn.T @ (np.array([0.0, -0.2, 0.56]) - FACTS.extras["default_root_pos"])
    ball = coal.Sphere(0.0325 * np.sqrt(3.0)), coal.Transform3s(np.eye(3), centre)
    for link, *placed in placed_shapes(FACTS, FACTS.extras["default_joint_pos"]):
        gap = coal.distance(*placed, *ball, coal.DistanceRequest(), coal.DistanceResult())
        assert gap > 0.003, f"{link} is {1000 * gap:.1f} mm away"


@pytest.mark.parametrize("robot", ["allegro_hand", "shadow_hand", "dmc_humanoid", "kuka_allegro", "franka_panda"])
def test_no_pair_that_may_collide_overlaps_in_the_default_pose(robot):
    import importlib

    facts = importlib.import_module(f"epo_tasks.robots.{robot}").FACTS
    filtered = facts.filtered_pairs()
    placed = placed_shapes(facts, facts.extras["default_joint_pos"])
    for (first, *a), (second, *b) in combinations(placed, 2):
        if first == second or (min(first, second), max(first, second)) in filtered:
            continue
        result = coal.CollisionResult()
        touching = coal.collide(*a, *b, coal.CollisionRequest(), result)
        assert not touching, f"{first} and {second} overlap"
