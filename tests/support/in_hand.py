"""The two in-hand tasks as the specification states them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from epo_tasks.robots import allegro_hand, shadow_hand
from epo_tasks.robots.facts import RobotFacts


@dataclass(frozen=True)
class Hand:
    """What differs between the two."""

    task: str
    facts: RobotFacts
    motors: tuple[str, ...]
    step_dt: float
    size: int
    edge: float
    mass: float
    start: tuple[float, float, float]
    fingertips: tuple[str, ...]


SHADOW_MOTORS = (
    *("WRJ1", "WRJ0"),
    *(f"{finger}J{joint}" for finger in ("FF", "MF", "RF") for joint in (3, 2, 1)),
    *(f"LFJ{joint}" for joint in (4, 3, 2, 1)),
    *(f"THJ{joint}" for joint in (4, 3, 2, 1, 0)),
)

HANDS = {
    "allegro": Hand(
        "Epo-AllegroHand-Reorient-v0",
        allegro_hand.FACTS,
        allegro_hand.FACTS.joint_names,
        1 / 30,
        72,
        0.065,
        0.10985,
        (0.0, -0.2, 0.56),
        (),
    ),
    "shadow": Hand(
        "Epo-ShadowHand-Reorient-v0",
        shadow_hand.FACTS,
        SHADOW_MOTORS,
        1 / 60,
        157,
        0.05,
        0.070875,
        (0.0, -0.39, 0.60),
        ("ffdistal", "mfdistal", "rfdistal", "lfdistal", "thdistal"),
    ),
}


def limits(hand: Hand, names: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lower and upper limits of joints, from the facts."""
    joints = {joint.name: joint for joint in hand.facts.moving_joints}
    return torch.tensor([joints[n].lower for n in names]), torch.tensor([joints[n].upper for n in names])


def hold(env: Any, hand: Hand) -> torch.Tensor:
    """Return the action whose targets are the present angles."""
    robot = env.scene["robot"]
    low, high = limits(hand, hand.motors)
    angles = robot.data.joint_pos.torch[:, [robot.joint_names.index(name) for name in hand.motors]]
    return (2.0 * angles - high - low) / (high - low)


def place_cube(env: Any, offset: tuple[float, float, float], rows: slice = slice(None)) -> None:
    """Put cubes at rest at this place from the goal position [m]; they keep their orientation."""
    cube, goal = env.scene["object"], env.command_manager.get_term("goal")
    pose = cube.data.root_link_pose_w.torch.clone()
    pose[rows, :3] = (goal.goal_pos + env.scene.env_origins + torch.tensor(offset))[rows]
    cube.write_root_pose_to_sim_index(root_pose=pose)
    cube.write_root_velocity_to_sim_index(root_velocity=torch.zeros(len(pose), 6))


def rotation(quat: torch.Tensor) -> torch.Tensor:
    """Return the rotation matrices of quaternions (x, y, z, w)."""
    x, y, z, w = quat.double().unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def angle_between(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the angle [rad] between orientations, by the trace of the rotation matrix between them."""
    between = rotation(first) @ rotation(second).transpose(-1, -2)
    trace = between.diagonal(dim1=-2, dim2=-1).sum(-1)
    return torch.acos(((trace - 1.0) / 2.0).clamp(-1.0, 1.0)).float()


def goal_of(env: Any) -> Any:
    """Return the goal term."""
    return env.command_manager.get_term("goal")
