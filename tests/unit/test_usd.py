"""The USD files against the facts they were written from, read back with pxr alone."""

import importlib
import math
import os
import time

import numpy as np
import pytest
from pxr import Usd, UsdGeom, UsdPhysics

from epo_tasks.robots.facts import load_facts
from epo_tasks.robots.usd import cached_usd, write_usd

pytestmark = pytest.mark.unit

ROBOTS = ("anymal_c", "unitree_a1", "kuka_allegro", "allegro_hand", "shadow_hand", "dmc_humanoid", "franka_panda")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request, tmp_path_factory):
    facts = importlib.import_module(f"epo_tasks.robots.{request.param}").FACTS
    path = tmp_path_factory.mktemp("usd") / f"{request.param}.usda"
    write_usd(path, facts, self_collision=True)
    return facts, Usd.Stage.Open(str(path))


def matrix(quat) -> np.ndarray:
    w, (x, y, z) = quat.GetReal(), quat.GetImaginary()
    q = np.array([w, x, y, z]) / np.linalg.norm([w, x, y, z])
    cross = np.array([[0, -q[3], q[2]], [q[3], 0, -q[1]], [-q[2], q[1], 0]])
    return np.eye(3) + 2 * q[0] * cross + 2 * cross @ cross


def test_masses_and_inertia_tensors_come_back(robot):
    facts, stage = robot
    for link in facts.links:
        mass = UsdPhysics.MassAPI(stage.GetPrimAtPath(f"/Robot/{link.name}"))
        assert mass.GetMassAttr().Get() == pytest.approx(link.mass, rel=1e-6)
        np.testing.assert_allclose(mass.GetCenterOfMassAttr().Get(), link.com, atol=1e-6)
        axes = matrix(mass.GetPrincipalAxesAttr().Get())
        tensor = axes @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axes.T
        scale = np.trace(link.inertia_matrix)
        np.testing.assert_allclose(tensor, link.inertia_matrix, atol=2e-6 * scale)
        assert min(mass.GetDiagonalInertiaAttr().Get()) > 0


def test_joint_frames_meet_in_the_zero_pose(robot):
    facts, stage = robot
    cache = UsdGeom.XformCache()
    for joint in facts.joints:
        prim = UsdPhysics.Joint(stage.GetPrimAtPath(f"/Robot/joints/{joint.name}"))
        frames = []
        for body, position, rotation in (
            (joint.parent, prim.GetLocalPos0Attr(), prim.GetLocalRot0Attr()),
            (joint.child, prim.GetLocalPos1Attr(), prim.GetLocalRot1Attr()),
        ):
            world = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(f"/Robot/{body}"))).T
            turn = world[:3, :3] @ matrix(rotation.Get())
            frames.append((turn, world[:3, :3] @ np.array(position.Get()) + world[:3, 3]))
        np.testing.assert_allclose(frames[0][0], frames[1][0], atol=1e-6)
        np.testing.assert_allclose(frames[0][1], frames[1][1], atol=1e-6)
        if joint.type != "fixed":
            rotation, _ = facts.link_poses()[joint.child]
            np.testing.assert_allclose(frames[1][0][:, 0], rotation @ np.array(joint.axis), atol=1e-6)


UNITS = {
    "revolute": (UsdPhysics.RevoluteJoint, "angular", math.radians(1.0)),
    "prismatic": (UsdPhysics.PrismaticJoint, "linear", 1.0),
}
"""USD's kind of joint and drive, and one of its units in radians or metres."""


def test_limits_and_drives_are_in_usd_units(robot):
    facts, stage = robot
    for joint in facts.moving_joints:
        schema, name, unit = UNITS[joint.type]
        prim = schema(stage.GetPrimAtPath(f"/Robot/joints/{joint.name}"))
        assert prim
        if joint.upper - joint.lower < 4 * math.pi:
            assert unit * prim.GetLowerLimitAttr().Get() == pytest.approx(joint.lower, abs=1e-6)
            assert unit * prim.GetUpperLimitAttr().Get() == pytest.approx(joint.upper, abs=1e-6)
        else:
            assert not prim.GetLowerLimitAttr().HasAuthoredValue()
        drive = UsdPhysics.DriveAPI(prim.GetPrim(), name)
        assert drive.GetMaxForceAttr().Get() == pytest.approx(joint.effort or 1000.0)
        stiffness = joint.drive_stiffness or joint.spring_stiffness
        assert drive.GetStiffnessAttr().Get() / unit == pytest.approx(stiffness, rel=1e-6)
        assert drive.GetDampingAttr().Get() / unit == pytest.approx(joint.drive_damping or joint.damping, rel=1e-6)
        speed = prim.GetPrim().GetAttribute("physxJoint:maxJointVelocity").Get()
        assert unit * speed == pytest.approx(joint.velocity, rel=1e-6)


def test_only_links_that_may_touch_are_left_unfiltered(robot):
    facts, stage = robot
    written = set()
    for link in facts.links:
        prim = stage.GetPrimAtPath(f"/Robot/{link.name}")
        for target in UsdPhysics.FilteredPairsAPI(prim).GetFilteredPairsRel().GetTargets():
            written.add((link.name, target.name))
    assert written == facts.filtered_pairs()
    root = next(prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.ArticulationRootAPI))
    assert root.GetName() == ("Robot" if facts.extras["fixed_base"] else facts.root)
    assert root.GetAttribute("physxArticulation:enabledSelfCollisions").Get()
    assert root.GetAttribute("newton:selfCollisionEnabled").Get()


def test_every_shape_is_a_coloured_collider(robot):
    facts, stage = robot
    shapes = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Gprim)]
    assert len(shapes) == sum(len(link.shapes) for link in facts.links)
    for prim in shapes:
        assert prim.HasAPI(UsdPhysics.CollisionAPI)
        assert len(UsdGeom.Gprim(prim).GetDisplayColorAttr().Get()) == 1


@pytest.mark.parametrize(
    ("name", "stiffness", "damping"), [("FACTS", 30.0, 0.1), ("LEVER_ARM_FACTS", 1.491e-3, 4.97e-6)]
)
def test_a_tendon_is_an_angle_with_the_chosen_stiffness(tmp_path, name, stiffness, damping):
    """J0 - 1.1418 J1 within +-0.1418 rad; a spring of 30 N/m on a lever arm of 7.05 mm is one of 0.0015 N m/rad."""
    from epo_tasks.robots import shadow_hand

    write_usd(tmp_path / "hand.usda", getattr(shadow_hand, name), self_collision=True)
    stage = Usd.Stage.Open(str(tmp_path / "hand.usda"))
    root = stage.GetPrimAtPath("/Robot/joints/MFJ2")
    values = {
        key: root.GetAttribute(f"physxTendon:MF:{key}").Get() for key in ("limitStiffness", "damping", "upperLimit")
    }
    assert values["limitStiffness"] == pytest.approx(stiffness, rel=1e-3)
    assert values["damping"] == pytest.approx(damping, rel=1e-3)
    assert values["upperLimit"] == pytest.approx(0.14184, abs=1e-5)
    for joint, factor in (("MFJ0", 1.0), ("MFJ1", -1.14184)):
        attribute = stage.GetPrimAtPath(f"/Robot/joints/{joint}").GetAttribute("physxTendon:MF:forceCoefficient")
        assert attribute.Get()[0] == pytest.approx(factor, abs=1e-5)


def test_rounded_cylinder_keeps_its_overall_length(tmp_path):
    facts = load_facts("anymal_c")
    path = tmp_path / "round.usda"
    write_usd(path, facts, self_collision=False, round_cylinders=True)
    stage = Usd.Stage.Open(str(path))
    assert not [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Cylinder)]
    tube = next(shape for shape in facts.link("LF_FOOT").shapes if shape.type == "cylinder")
    capsule = UsdGeom.Capsule(stage.GetPrimAtPath(f"/Robot/LF_FOOT/shape_{facts.link('LF_FOOT').shapes.index(tube)}"))
    overall = capsule.GetHeightAttr().Get() + 2 * capsule.GetRadiusAttr().Get()
    assert overall == pytest.approx(tube.size["length"])


def test_cache_writes_once_and_follows_the_facts(tmp_path, monkeypatch):
    monkeypatch.setenv("EPO_CACHE", str(tmp_path))
    facts = load_facts("unitree_a1")
    begin = time.monotonic()
    path = cached_usd(facts, self_collision=False)
    assert time.monotonic() - begin < 2.0
    written = os.stat(path).st_mtime_ns
    assert cached_usd(facts, self_collision=False) == path
    assert os.stat(path).st_mtime_ns == written
    assert cached_usd(facts, self_collision=True) != path
    assert cached_usd(facts.with_variant("vendor"), self_collision=False) != path
    assert {file.suffix for file in (tmp_path / "robots").iterdir()} == {".usda"}
