"""Write a robot's facts as USD, once, into a cache folder.

The files carry what both engines read: ``physics:*`` for everybody, ``physx*:*`` for PhysX and ``newton:*`` for Newton.
What belongs to a task rather than to a robot (solver iterations, damping of bodies, contact offsets) is set by the
task's ``ArticulationCfg``.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from .facts import Joint, Link, RobotFacts, Shape, quaternion, rotation_matrix

ROOT_COLOR = (0.20, 0.23, 0.28)
END_COLOR = (0.93, 0.45, 0.13)
LINK_COLORS = ((0.75, 0.77, 0.80), (0.36, 0.53, 0.74))
"""Colours of the root, of feet and fingertips, and alternating along a chain, so that pictures can be read."""

FRICTION = 1.0
RESTITUTION = 0.0
"""Surface of every shape: Isaac Gym's default, which the reference tasks leave as it is."""

FRICTION_GAIN = 1000.0
"""Friction force per slip speed on Newton [N s/m], as long as friction suffices. It is Newton's default, written down;
only the elliptic cone of the walking robots uses it."""

MOTIONS = {
    # USD counts angles in degrees and lengths in metres
    "revolute": (UsdPhysics.RevoluteJoint, UsdPhysics.Tokens.angular, math.degrees(1.0)),
    "prismatic": (UsdPhysics.PrismaticJoint, UsdPhysics.Tokens.linear, 1.0),
}
"""Kinds of moving joints: USD's schema, the name of its drive, and how many of USD's units a radian or a metre has."""


def cached_usd(facts: RobotFacts, *, self_collision: bool, round_cylinders: bool = False) -> str:
    """Return the path of the robot's USD file and write the file if the cache has none for these facts.

    Args:
        facts: The robot.
        self_collision: Whether links that are not neighbours collide with each other.
        round_cylinders: Whether cylinders become capsules of the same radius and overall length. They touch the
            ground in one point instead of a circle, which is cheaper and what the reference importer does.
    """
    key = hashlib.sha256(repr((facts, self_collision, round_cylinders)).encode())
    key.update(Path(__file__).read_bytes())
    path = cache_dir() / f"{facts.name}-{key.hexdigest()[:16]}.usda"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # written beside its place and moved there, so that a concurrent reader never sees half a file
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            scratch = Path(folder) / path.name
            write_usd(scratch, facts, self_collision=self_collision, round_cylinders=round_cylinders)
            os.replace(scratch, path)
    return str(path)


def cache_dir() -> Path:
    """Folder of the robots' USD files: ``$EPO_CACHE``, else ``$XDG_CACHE_HOME/epo-lab``, else ``~/.cache/epo-lab``."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epo-lab"
    return Path(os.environ.get("EPO_CACHE") or default) / "robots"


def write_usd(path: Path, facts: RobotFacts, *, self_collision: bool, round_cylinders: bool = False) -> None:
    """Write the robot to ``path`` in its zero pose; the root link coincides with the default prim."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    robot = UsdGeom.Xform.Define(stage, "/Robot").GetPrim()
    stage.SetDefaultPrim(robot)

    colors = _link_colors(facts)
    surface = write_surface(stage, "/Robot/surface")
    for link, (rotation, position) in zip(facts.links, _in_order(facts.link_poses(), facts.link_names), strict=True):
        prim = UsdGeom.Xform.Define(stage, f"/Robot/{link.name}").GetPrim()
        _set_pose(prim, rotation, position)
        _write_body(prim, link)
        for index, shape in enumerate(link.shapes):
            shape = _rounded(shape) if round_cylinders else shape
            write_shape(stage, f"/Robot/{link.name}/shape_{index}", shape, colors[link.name], surface)

    # A floating articulation is rooted at its root link. On a common parent PhysX would choose the root itself, the
    # link in the middle of the tree, and turn the joints on the way round: the humanoid would start at the waist.
    fixed = facts.extras["fixed_base"]
    _write_articulation_root(robot if fixed else stage.GetPrimAtPath(f"/Robot/{facts.root}"), self_collision)

    UsdGeom.Scope.Define(stage, "/Robot/joints")
    if fixed:
        anchor = UsdPhysics.FixedJoint.Define(stage, "/Robot/joints/root_joint")
        anchor.CreateBody1Rel().SetTargets([f"/Robot/{facts.root}"])
    for joint in facts.joints:
        _write_joint(stage, joint)
    for name, tendon in facts.extras.get("tendons", {}).items():
        _write_tendon(stage, facts, name, tendon)
    if self_collision:
        _write_filtered_pairs(stage, facts)
    stage.GetRootLayer().Save()


def _in_order(poses: dict, names: tuple[str, ...]) -> list:
    return [poses[name] for name in names]


def _write_articulation_root(prim: Usd.Prim, self_collision: bool) -> None:
    UsdPhysics.ArticulationRootAPI.Apply(prim)
    # codeless schemas: the tokens and attributes are all that the engines look for
    prim.AddAppliedSchema("PhysxArticulationAPI")
    prim.AddAppliedSchema("NewtonArticulationRootAPI")
    for name in ("physxArticulation:enabledSelfCollisions", "newton:selfCollisionEnabled"):
        prim.CreateAttribute(name, Sdf.ValueTypeNames.Bool).Set(self_collision)


def _write_body(prim: Usd.Prim, link: Link) -> None:
    UsdPhysics.RigidBodyAPI.Apply(prim)
    prim.AddAppliedSchema("PhysxRigidBodyAPI")
    mass = UsdPhysics.MassAPI.Apply(prim)
    # principal moments and the rotation of their axes in the link's frame
    moments, axes = np.linalg.eigh(link.inertia_matrix)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0
    mass.CreateMassAttr(link.mass)
    mass.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, link.com)))
    mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*map(float, moments)))
    mass.CreatePrincipalAxesAttr(_quatf(axes))


def write_surface(stage: Usd.Stage, path: str) -> UsdShade.Material:
    """Author the physics material of shapes.

    Every shape has to be bound to one: without it each engine takes a default of its own (ovphysx 0.5), because only
    Kit hands ``SimulationCfg.physics_material`` on to shapes.
    """
    material: Any = UsdShade.Material.Define(stage, path)
    prim = material.GetPrim()
    physics = UsdPhysics.MaterialAPI.Apply(prim)
    physics.CreateStaticFrictionAttr(FRICTION)
    physics.CreateDynamicFrictionAttr(FRICTION)
    physics.CreateRestitutionAttr(RESTITUTION)
    prim.AddAppliedSchema("PhysxMaterialAPI")
    for name in ("frictionCombineMode", "restitutionCombineMode"):
        prim.CreateAttribute(f"physxMaterial:{name}", Sdf.ValueTypeNames.Token).Set("average")
    write_friction_gain(prim)
    return material


def write_friction_gain(material: Usd.Prim) -> None:
    """Author what Newton reads of a physics material beyond the friction."""
    material.AddAppliedSchema("NewtonMaterialAPI")
    material.CreateAttribute("newton:contactFrictionGain", Sdf.ValueTypeNames.Float).Set(FRICTION_GAIN)


def write_shape(
    stage: Usd.Stage, path: str, shape: Shape, color: tuple[float, float, float], surface: UsdShade.Material
) -> None:
    """Author a coloured primitive that collides and has this surface."""
    scale = None
    if shape.type == "box":
        geom = UsdGeom.Cube.Define(stage, path)
        geom.CreateSizeAttr(1.0)
        scale = Gf.Vec3f(*(shape.size[axis] for axis in "xyz"))
    elif shape.type == "sphere":
        geom = UsdGeom.Sphere.Define(stage, path)
        geom.CreateRadiusAttr(shape.size["radius"])
    elif shape.type in ("cylinder", "capsule"):
        geom = (UsdGeom.Cylinder if shape.type == "cylinder" else UsdGeom.Capsule).Define(stage, path)
        geom.CreateRadiusAttr(shape.size["radius"])
        geom.CreateHeightAttr(shape.size["length"])
        geom.CreateAxisAttr(UsdGeom.Tokens.z)
    else:
        raise ValueError(f"unknown shape type {shape.type!r} at {path}; there are box, sphere, cylinder and capsule")
    extent = UsdGeom.Boundable.ComputeExtentFromPlugins(geom, Usd.TimeCode.Default())
    geom.CreateExtentAttr(extent)
    geom.CreateDisplayColorAttr([Gf.Vec3f(*color)])
    _set_pose(geom.GetPrim(), rotation_matrix(shape.rpy), np.array(shape.xyz), scale)
    UsdPhysics.CollisionAPI.Apply(geom.GetPrim())
    geom.GetPrim().AddAppliedSchema("PhysxCollisionAPI")
    binding = UsdShade.MaterialBindingAPI.Apply(geom.GetPrim())
    binding.Bind(surface, UsdShade.Tokens.strongerThanDescendants, "physics")


def _rounded(shape: Shape) -> Shape:
    """Return a cylinder as a capsule of the same overall length, or as a sphere if it is shorter than thick."""
    if shape.type != "cylinder":
        return shape
    radius, straight = shape.size["radius"], shape.size["length"] - 2.0 * shape.size["radius"]
    if straight <= 0.0:
        return Shape("sphere", {"radius": radius}, shape.xyz, shape.rpy)
    return Shape("capsule", {"radius": radius, "length": straight}, shape.xyz, shape.rpy)


def _write_joint(stage: Usd.Stage, joint: Joint) -> None:
    path = f"/Robot/joints/{joint.name}"
    if joint.type == "fixed":
        usd_joint = UsdPhysics.FixedJoint.Define(stage, path)
        axis_frame = np.eye(3)
    elif joint.type in MOTIONS:
        schema, drive, unit = MOTIONS[joint.type]
        usd_joint = schema.Define(stage, path)
        axis_frame = _frame_with_x_along(np.array(joint.axis))
        _write_motion(usd_joint, joint, drive, unit)
    else:
        raise ValueError(f"joint {joint.name} is {joint.type}; there are {', '.join(MOTIONS)} and fixed joints")
    usd_joint.CreateBody0Rel().SetTargets([f"/Robot/{joint.parent}"])
    usd_joint.CreateBody1Rel().SetTargets([f"/Robot/{joint.child}"])
    # USD joints move about or along X, Y or Z of a joint frame: both frames are turned so that X is the joint's axis
    usd_joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, joint.xyz)))
    usd_joint.CreateLocalRot0Attr(_quatf(rotation_matrix(joint.rpy) @ axis_frame))
    usd_joint.CreateLocalPos1Attr(Gf.Vec3f(0.0))
    usd_joint.CreateLocalRot1Attr(_quatf(axis_frame))


def _write_motion(usd_joint: UsdPhysics.Joint, joint: Joint, drive_name: str, unit: float) -> None:
    """Author limits and drive of a joint; ``unit`` is how many of USD's units a radian or a metre has."""
    prim = usd_joint.GetPrim()
    usd_joint.CreateAxisAttr(UsdPhysics.Tokens.x)
    # wider than one turn either way means no limit; PhysX knows no revolute limit beyond that
    if joint.type != "revolute" or joint.upper - joint.lower < 4.0 * math.pi:
        usd_joint.CreateLowerLimitAttr(joint.lower * unit)
        usd_joint.CreateUpperLimitAttr(joint.upper * unit)
    drive = UsdPhysics.DriveAPI.Apply(prim, drive_name)
    drive.CreateTypeAttr(UsdPhysics.Tokens.force)
    drive.CreateMaxForceAttr(joint.drive_effort)
    drive.CreateStiffnessAttr((joint.drive_stiffness or joint.spring_stiffness) / unit)
    drive.CreateDampingAttr((joint.drive_damping or joint.damping) / unit)
    drive.CreateTargetPositionAttr(0.0)
    prim.AddAppliedSchema("PhysxJointAPI")
    prim.AddAppliedSchema("NewtonJointAPI")
    for name, value in {
        "physxJoint:maxJointVelocity": joint.velocity * unit,
        "physxJoint:armature": joint.armature,
        "newton:armature": joint.armature,
        "newton:friction": joint.friction,
        "newton:velocityLimit": joint.velocity * unit,
    }.items():
        prim.CreateAttribute(name, Sdf.ValueTypeNames.Float).Set(value)


def _write_tendon(stage: Usd.Stage, facts: RobotFacts, name: str, tendon: dict) -> None:
    """Author a tendon that keeps a sum of joint angles within limits, for both engines.

    The sum is scaled so that its first joint counts once: it is an angle then, and a stiffness is one of that joint.
    """
    scale = tendon["coefficients"][0]
    coefficients = [value / scale for value in tendon["coefficients"]]
    low, high = (limit / scale for limit in tendon["range"])
    # PhysX grows a tendon from the joint before its first one, which does not count itself
    joints = sorted(tendon["joints"], key=facts.joint_names.index)
    first = next(joint for joint in facts.joints if joint.name == joints[0])
    before = next(joint.name for joint in facts.joints if joint.child == first.parent)
    root = stage.GetPrimAtPath(f"/Robot/joints/{before}")
    root.AddAppliedSchema(f"PhysxTendonAxisRootAPI:{name}")
    floats = {
        "stiffness": 0.0,
        "damping": tendon["damping"],
        "limitStiffness": tendon["limit_stiffness"],
        "lowerLimit": low,
        "upperLimit": high,
    }
    for key, value in floats.items():
        root.CreateAttribute(f"physxTendon:{name}:{key}", Sdf.ValueTypeNames.Float).Set(value)
    _write_tendon_axis(root, name, 0.0)
    for joint, coefficient in zip(tendon["joints"], coefficients, strict=True):
        prim = stage.GetPrimAtPath(f"/Robot/joints/{joint}")
        prim.AddAppliedSchema(f"PhysxTendonAxisAPI:{name}")
        _write_tendon_axis(prim, name, coefficient)

    # MuJoCo's limits are hard
    prim = stage.DefinePrim(f"/Robot/tendons/{name}", "MjcTendon")
    prim.CreateAttribute("mjc:type", Sdf.ValueTypeNames.Token).Set("fixed")
    prim.CreateRelationship("mjc:path").SetTargets([f"/Robot/joints/{joint}" for joint in tendon["joints"]])
    prim.CreateAttribute("mjc:path:indices", Sdf.ValueTypeNames.IntArray).Set(range(len(coefficients)))
    prim.CreateAttribute("mjc:path:coef", Sdf.ValueTypeNames.DoubleArray).Set(coefficients)
    prim.CreateAttribute("mjc:limited", Sdf.ValueTypeNames.Token).Set("true")
    prim.CreateAttribute("mjc:range:min", Sdf.ValueTypeNames.Double).Set(low)
    prim.CreateAttribute("mjc:range:max", Sdf.ValueTypeNames.Double).Set(high)
    prim.CreateAttribute("mjc:damping", Sdf.ValueTypeNames.Double).Set(tendon["damping"])


def _write_tendon_axis(prim: Usd.Prim, name: str, coefficient: float) -> None:
    # USD counts angles in degrees
    values = {"gearing": math.radians(coefficient), "forceCoefficient": coefficient}
    for key, value in values.items():
        prim.CreateAttribute(f"physxTendon:{name}:{key}", Sdf.ValueTypeNames.FloatArray).Set([value])


def _write_filtered_pairs(stage: Usd.Stage, facts: RobotFacts) -> None:
    for first, second in sorted(facts.filtered_pairs()):
        filtered = UsdPhysics.FilteredPairsAPI.Apply(stage.GetPrimAtPath(f"/Robot/{first}"))
        filtered.CreateFilteredPairsRel().AddTarget(f"/Robot/{second}")


def _link_colors(facts: RobotFacts) -> dict[str, tuple[float, float, float]]:
    depth = {facts.root: 0}
    for joint in facts.joints:
        depth[joint.child] = depth[joint.parent] + 1
    ends = facts.extras["end_links"]
    return {
        name: ROOT_COLOR if name == facts.root else END_COLOR if name in ends else LINK_COLORS[level % 2]
        for name, level in depth.items()
    }


def _set_pose(prim: Usd.Prim, rotation: np.ndarray, position: np.ndarray, scale: Gf.Vec3f | None = None) -> None:
    xform = UsdGeom.Xformable(prim)
    xform.AddTranslateOp().Set(Gf.Vec3d(*map(float, position)))
    # in double precision: USD recovers the angle with an arc cosine, which loses half of the digits of a small one
    x, y, z, w = map(float, quaternion(rotation))
    xform.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, Gf.Vec3d(x, y, z)))
    xform.AddScaleOp().Set(scale or Gf.Vec3f(1.0))


def _quatf(rotation: np.ndarray) -> Gf.Quatf:
    x, y, z, w = map(float, quaternion(rotation))
    return Gf.Quatf(w, Gf.Vec3f(x, y, z))


def _frame_with_x_along(axis: np.ndarray) -> np.ndarray:
    """Return a rotation matrix whose first column is ``axis``."""
    axis = axis / np.linalg.norm(axis)
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    second = np.cross(helper, axis)
    second /= np.linalg.norm(second)
    return np.column_stack([axis, second, np.cross(axis, second)])
