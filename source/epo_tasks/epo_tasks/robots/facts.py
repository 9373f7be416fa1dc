"""Robot descriptions as plain data: links, joints, inertias and primitive shapes read from ``facts/*.json``.

Units are SI and radians. ``rpy`` is fixed-axis roll-pitch-yaw; ``inertia`` is (ixx, iyy, izz, ixy, ixz, iyz) about the
centre of mass along the link axes; quaternions are (x, y, z, w).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

FACTS_DIR = Path(__file__).parent / "facts"

Vector = tuple[float, ...]


@dataclass(frozen=True)
class Shape:
    """A collision primitive fixed to a link."""

    type: str
    """One of box, sphere, cylinder, capsule; the axis of the last two is local z."""
    size: dict[str, float]
    """Box: full edges x, y, z. Others: radius and, except for the sphere, length (of a capsule without its caps)."""
    xyz: Vector
    rpy: Vector


@dataclass(frozen=True)
class Link:
    """A rigid body."""

    name: str
    mass: float
    com: Vector
    inertia: Vector
    shapes: tuple[Shape, ...] = ()

    @property
    def inertia_matrix(self) -> np.ndarray:
        """Inertia tensor about the centre of mass along the link axes [kg m^2]."""
        ixx, iyy, izz, ixy, ixz, iyz = self.inertia
        return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


@dataclass(frozen=True)
class Joint:
    """A joint between two links, with its motor and its passive properties."""

    name: str
    parent: str
    child: str
    type: str
    """One of revolute, prismatic, fixed."""
    xyz: Vector
    rpy: Vector
    axis: Vector
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    """Passive damping [N m s/rad, N s/m]."""
    friction: float
    armature: float = 0.0
    spring_stiffness: float = 0.0
    """Passive spring to angle or place zero [N m/rad, N/m]."""
    drive_stiffness: float = 0.0
    drive_damping: float = 0.0

    @property
    def drive_effort(self) -> float:
        """Limit of the drive [N m, N]; a joint without a motor still has a damper, which nothing cuts off."""
        return self.effort or 1000.0


@dataclass(frozen=True)
class RobotFacts:
    """A robot: a tree of links whose joints are listed parent first."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """Name of the root link."""
        return self.extras["root_link"]

    @property
    def moving_joints(self) -> tuple[Joint, ...]:
        """Joints with a degree of freedom, in the order of the facts file."""
        return tuple(joint for joint in self.joints if joint.type != "fixed")

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints: the order of actions and observations on every physics engine."""
        return tuple(joint.name for joint in self.moving_joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the links, root first."""
        return tuple(link.name for link in self.links)

    @property
    def total_mass(self) -> float:
        """Sum of the link masses [kg]."""
        return sum(link.mass for link in self.links)

    def link(self, name: str) -> Link:
        """Return the link called ``name``."""
        return next(link for link in self.links if link.name == name)

    def per_joint(self, attribute: str) -> dict[str, float]:
        """Return one attribute of the moving joints by name, as Isaac Lab's actuator configs take it."""
        return {joint.name: getattr(joint, attribute) for joint in self.moving_joints}

    def with_variant(self, name: str) -> RobotFacts:
        """Return the robot with the joint values of ``extras.variants[name]``."""
        variant = self.extras["variants"][name]
        keys = ("effort", "velocity", "damping", "armature", "spring_stiffness")

        def vary(joint: Joint) -> Joint:
            changes: dict[str, Any] = {
                key: variant[key][joint.name] for key in keys if joint.name in variant.get(key, ())
            }
            if joint.name in variant.get("limits", ()):
                changes["lower"], changes["upper"] = variant["limits"][joint.name]
            if joint.name in variant.get("axis", ()):
                axis = np.array(variant["axis"][joint.name])
                changes["axis"] = tuple(axis / np.linalg.norm(axis))
            if joint.name in variant.get("gains", ()):
                gains = variant["gains"][joint.name]
                changes["drive_stiffness"], changes["drive_damping"] = gains["stiffness"], gains["damping"]
            return replace(joint, **changes)

        return replace(self, joints=tuple(vary(joint) for joint in self.joints))

    def merge_fixed(self) -> RobotFacts:
        """Return the robot with every link behind a fixed joint merged into its parent."""
        facts = self
        for joint in reversed([joint for joint in self.joints if joint.type == "fixed"]):
            facts = facts._merge(joint)
        return facts

    def _merge(self, fixed: Joint) -> RobotFacts:
        """Merge the child of one fixed joint into its parent."""
        rotation, offset = rotation_matrix(fixed.rpy), np.array(fixed.xyz)
        merged = _merge_links(self.link(fixed.parent), self.link(fixed.child), rotation, offset)
        links = [merged if link.name == fixed.parent else link for link in self.links if link.name != fixed.child]
        joints = []
        for joint in self.joints:
            if joint.parent == fixed.child:
                xyz = tuple(rotation @ joint.xyz + offset)
                joint = replace(joint, parent=fixed.parent, xyz=xyz, rpy=_rpy(rotation @ rotation_matrix(joint.rpy)))
            if joint is not fixed:
                joints.append(joint)
        # a filtered pair that names the merged link now means the link that carries it
        pairs = [
            [fixed.parent if name == fixed.child else name for name in pair]
            for pair in self.extras.get("self_collision_filter", [])
        ]
        return replace(
            self, links=tuple(links), joints=tuple(joints), extras=self.extras | {"self_collision_filter": pairs}
        )

    def link_poses(self, joint_pos: dict[str, float] | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return (rotation matrix, position) of every link in the root's frame; joints not named are at zero."""
        joint_pos = joint_pos or {}
        poses = {self.root: (np.eye(3), np.zeros(3))}
        for joint in self.joints:
            rotation, position = poses[joint.parent]
            position = position + rotation @ np.array(joint.xyz)
            rotation = rotation @ rotation_matrix(joint.rpy)
            value = joint_pos.get(joint.name, 0.0)
            if joint.type == "revolute":
                rotation = rotation @ axis_rotation(joint.axis, value)
            elif joint.type == "prismatic":
                position = position + rotation @ np.array(joint.axis) * value
            poses[joint.child] = (rotation, position)
        return poses

    def without_contact(self, *pairs: tuple[str, str]) -> RobotFacts:
        """Return the robot with more pairs of links that never collide with each other."""
        known = self.extras.get("self_collision_filter", [])
        return replace(self, extras=self.extras | {"self_collision_filter": [*known, *map(list, pairs)]})

    def with_tendons(self, name: str, *, lever_arms: bool = False) -> RobotFacts:
        """Return the robot with the tendons of ``extras.variants[name]``.

        Args:
            name: The variant.
            lever_arms: Whether a tendon is a length, its coefficients are lever arms [m], and its limit stiffness and
                damping are those of the length [N/m, N s/m]. Defaults to False: they are those of its first joint's
                angle [N m/rad, N m s/rad].
        """
        tendons = {}
        for tendon, values in self.extras["variants"][name].items():
            factor = values["coefficients"][0] ** 2 if lever_arms else 1.0
            tendons[tendon] = values | {key: factor * values[key] for key in ("limit_stiffness", "damping")}
        return replace(self, extras=self.extras | {"tendons": tendons})

    def filtered_pairs(self) -> set[tuple[str, str]]:
        """Return the pairs of links that never collide with each other.

        These are links on one rigid body (behind fixed joints), neighbours, seen through links without a shape (a chain
        of hinges in one place is one ball joint to collisions), and the pairs of ``extras.self_collision_filter``,
        whose primitives overlap over much of the joint range.
        """
        parent = {joint.child: joint.parent for joint in self.joints}
        body = {self.root: self.root}
        for joint in self.joints:
            body[joint.child] = body[joint.parent] if joint.type == "fixed" else joint.child
        solid: dict[str, list[str]] = {name: [] for name in body.values()}
        for link in self.links:
            if link.shapes:
                solid[body[link.name]].append(link.name)

        pairs = {tuple(pair) for pair in self.extras.get("self_collision_filter", [])}
        for links in solid.values():
            pairs |= set(combinations(links, 2))
        for joint in self.moving_joints:
            neighbour = body[joint.parent]
            while neighbour != self.root and not solid[neighbour]:
                neighbour = body[parent[neighbour]]
            pairs |= set(product(solid[neighbour], solid[joint.child]))
        return {(min(pair), max(pair)) for pair in pairs}


@cache
def load_facts(name: str) -> RobotFacts:
    """Read ``facts/<name>.json``."""
    data = json.loads((FACTS_DIR / f"{name}.json").read_text())
    extras = data["extras"]
    links = tuple(
        Link(link["name"], link["mass"], tuple(link["com"]), tuple(link["inertia"]), _read_shapes(link["collisions"]))
        for link in data["links"]
    )
    return RobotFacts(name, links, tuple(_read_joint(joint, extras) for joint in data["joints"]), extras)


def rotation_matrix(rpy: Vector) -> np.ndarray:
    """Rotation matrix of fixed-axis roll-pitch-yaw angles."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def axis_rotation(axis: Vector, angle: float) -> np.ndarray:
    """Rotation matrix about a unit axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternion (x, y, z, w) of a rotation matrix."""
    # the eigenvector of this symmetric matrix to its largest eigenvalue is the quaternion, whatever the angle
    r = rotation
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[2, 1] - r[1, 2]],
            [r[0, 1] + r[1, 0], r[1, 1] - r[0, 0] - r[2, 2], r[1, 2] + r[2, 1], r[0, 2] - r[2, 0]],
            [r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], r[2, 2] - r[0, 0] - r[1, 1], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    quat = np.linalg.eigh(k)[1][:, -1]
    return quat if quat[3] >= 0 else -quat


def _rpy(rotation: np.ndarray) -> Vector:
    """Fixed-axis roll-pitch-yaw angles of a rotation matrix."""
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
    if abs(rotation[2, 0]) > 1.0 - 1e-12:
        # gimbal lock: only the difference of roll and yaw counts
        return (float(np.arctan2(-rotation[1, 2], rotation[1, 1])), float(pitch), 0.0)
    roll = np.arctan2(rotation[2, 1], rotation[2, 2])
    yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    return (float(roll), float(pitch), float(yaw))


def _merge_links(parent: Link, child: Link, rotation: np.ndarray, offset: np.ndarray) -> Link:
    """Rigidly join ``child``, whose frame is (rotation, offset) in the parent's frame, to ``parent``."""
    child_com = rotation @ np.array(child.com) + offset
    mass = parent.mass + child.mass
    com = (parent.mass * np.array(parent.com) + child.mass * child_com) / mass

    def about(link_mass: float, inertia: np.ndarray, link_com: np.ndarray) -> np.ndarray:
        d = link_com - com
        return inertia + link_mass * (d @ d * np.eye(3) - np.outer(d, d))

    total = about(parent.mass, parent.inertia_matrix, np.array(parent.com))
    total += about(child.mass, rotation @ child.inertia_matrix @ rotation.T, child_com)
    inertia = total[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    shapes = tuple(
        replace(shape, xyz=tuple(rotation @ shape.xyz + offset), rpy=_rpy(rotation @ rotation_matrix(shape.rpy)))
        for shape in child.shapes
    )
    return Link(parent.name, mass, tuple(com.tolist()), tuple(inertia.tolist()), parent.shapes + shapes)


def _read_shapes(shapes: list[dict]) -> tuple[Shape, ...]:
    return tuple(Shape(s["type"], s["size"], tuple(s["xyz"]), tuple(s["rpy"])) for s in shapes)


def _read_joint(joint: dict, extras: dict) -> Joint:
    name = joint["name"]
    vectors = {key: tuple(joint[key]) for key in ("xyz", "rpy", "axis")}
    drive = extras["gains"].get(name, {"stiffness": 0.0, "damping": 0.0})
    return Joint(
        **joint | vectors,
        armature=extras["armature"].get(name, 0.0),
        spring_stiffness=extras["spring_stiffness"].get(name, 0.0),
        drive_stiffness=drive["stiffness"],
        drive_damping=drive["damping"],
    )
