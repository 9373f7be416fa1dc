"""Start states of the Control Suite: any orientation and any pose within the limits in which nothing touches.

The suite draws states until MuJoCo finds no contact. Here a pool of such states is drawn once, from the capsules and
spheres of the facts, and episodes take one at random and turn it about the vertical, which changes no contact.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from epo_tasks.robots.facts import RobotFacts, rotation_matrix

Poses = dict[str, tuple[np.ndarray, np.ndarray]]


def draw_starts(facts: RobotFacts, count: int, height: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return collision-free states with the root this high above the ground [m].

    Args:
        facts: The humanoid.
        count: Number of states.
        height: Of the root [m].
        seed: The same seed gives the same states.

    Returns:
        Orientations (x, y, z, w) of shape (count, 4) and joint angles [rad] of shape (count, num_joints).
    """
    rng = np.random.default_rng(seed)
    orientations, angles = [], []
    found = 0
    while found < count:
        quat, joints = draw_states(facts, count, rng)
        free = ~touching(facts, quat, joints, height)
        orientations.append(quat[free])
        angles.append(joints[free])
        found += int(free.sum())
    return np.concatenate(orientations)[:count], np.concatenate(angles)[:count]


def draw_states(facts: RobotFacts, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return orientations, uniform over all rotations, and joint angles, uniform within the limits [rad]."""
    quat = rng.normal(size=(count, 4))
    low = np.array([joint.lower for joint in facts.moving_joints])
    high = np.array([joint.upper for joint in facts.moving_joints])
    return quat / np.linalg.norm(quat, axis=1, keepdims=True), rng.uniform(low, high, size=(count, len(low)))


def touching(facts: RobotFacts, quat: np.ndarray, joints: np.ndarray, height: float) -> np.ndarray:
    """Tell in which states links touch each other or the ground. Shape is (num_states,)."""
    poses = _link_poses(facts, quat, joints)
    segments = [
        (link.name, *_segment(poses[link.name], shape), shape.size["radius"])
        for link in facts.links
        for shape in link.shapes
    ]
    touch = np.zeros(len(quat), dtype=bool)
    for _, start, end, radius in segments:
        touch |= np.minimum(start[:, 2], end[:, 2]) + height < radius
    filtered = facts.filtered_pairs()
    for (first, a0, a1, a_radius), (second, b0, b1, b_radius) in combinations(segments, 2):
        if first != second and (min(first, second), max(first, second)) not in filtered:
            touch |= _segment_distance(a0, a1, b0, b1) < a_radius + b_radius
    return touch


def _link_poses(facts: RobotFacts, quat: np.ndarray, joints: np.ndarray) -> Poses:
    """Return rotation matrices and positions of all links, from the root's position, of many states at once."""
    column = {name: index for index, name in enumerate(facts.joint_names)}
    poses = {facts.root: (_matrices(quat), np.zeros((len(quat), 3)))}
    for joint in facts.joints:
        rotation, position = poses[joint.parent]
        position = position + rotation @ np.array(joint.xyz)
        rotation = rotation @ rotation_matrix(joint.rpy)
        if joint.type == "revolute":
            half = 0.5 * joints[:, column[joint.name], None]
            turn = np.concatenate([np.sin(half) * np.array(joint.axis), np.cos(half)], axis=1)
            rotation = rotation @ _matrices(turn)
        poses[joint.child] = (rotation, position)
    return poses


def _matrices(quat: np.ndarray) -> np.ndarray:
    """Return the rotation matrices of quaternions (x, y, z, w). Shape is (n, 3, 3)."""
    x, y, z, w = quat.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def _segment(pose: tuple[np.ndarray, np.ndarray], shape) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of a capsule's axis; those of a sphere are one point."""
    rotation, position = pose
    half = 0.5 * shape.size.get("length", 0.0) * rotation_matrix(shape.rpy)[:, 2]
    return tuple(position + rotation @ (np.array(shape.xyz) + sign * half) for sign in (-1.0, 1.0))


def _segment_distance(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> np.ndarray:
    """Return the distance of line segments. Shape is (n,)."""
    along_a, along_b, between = a1 - a0, b1 - b0, a0 - b0
    aa, bb, ab = (np.einsum("ni,ni->n", u, v) for u, v in ((along_a, along_a), (along_b, along_b), (along_a, along_b)))
    da, db = (np.einsum("ni,ni->n", u, between) for u in (along_a, along_b))
    tiny = 1e-12
    # the nearest points of the two lines, brought into the segments one after the other
    s = np.clip((ab * db - bb * da) / np.maximum(aa * bb - ab * ab, tiny), 0.0, 1.0)
    t = np.clip((ab * s + db) / np.maximum(bb, tiny), 0.0, 1.0)
    s = np.clip((ab * t - da) / np.maximum(aa, tiny), 0.0, 1.0)
    return np.linalg.norm(between + s[:, None] * along_a - t[:, None] * along_b, axis=1)
