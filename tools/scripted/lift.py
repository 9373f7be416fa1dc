"""A controller without learning that picks a cube off the table: it shows that grasping works in the physics."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from epo_tasks.robots.facts import load_facts
from epo_tasks.robots.kuka_allegro import ARM_JOINTS, HAND_JOINTS

TASK = "Epo-Kuka-OneArm-Regrasp-v0"
OVERRIDES = (
    "env.own_objects=[[1.0,1.0,1.0]]",
    "env.actions.push.scale=0.0",
    "env.commands.goal.goal_length=1000",
    # a goal that happens to be on the way must not put the cube back on the table
    "env.commands.goal.near_steps=1000",
)
"""Five-centimetre cubes, no pushes, and time enough."""

_FACTS = load_facts("kuka_allegro")

# x: along the fingers, y: from index to ring finger, z: out of the palm; all from the palm, over which the cube is held
GRASP_POINT = np.array([0.068, -0.018, 0.088])
PALM_AXES = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""Rows: directions of the palm's axes in the environment. The palm looks down, the fingers away from the base."""

OPEN = {"1": 0.30, "2": 0.55, "3": 0.45}
CLOSED = {"1": 1.00, "2": 0.95, "3": 0.75}
THUMB_OPEN = (1.45, 0.10, 0.00, 0.20)
THUMB_CLOSED = (1.45, 0.45, 0.70, 0.90)

PHASES = ((1.5, 0.12, 0.0), (1.5, 0.0, 0.0), (1.5, 0.0, 1.0), (2.5, 0.28, 1.0), (1.5, 0.28, 1.0))
"""Seconds, height of the hand above the grasp [m] and how far it is closed at the end of each phase."""


def solve_arm(
    position: np.ndarray, base: np.ndarray, start: dict[str, float], iterations: int = 60
) -> dict[str, float]:
    """Return arm angles that bring the grasp point of a downward palm to ``position``, by damped least squares.

    Args:
        position: Where the cube is held, in the frame of the environment [m].
        base: Position of the arm's base, which is not turned [m].
        start: Angles of all joints to begin with.
        iterations: Number of steps.
    """
    angles = dict(start)

    def error(joints: dict[str, float]) -> np.ndarray:
        rotation, palm = _FACTS.link_poses(joints)["palm_link"]
        place = base + palm + rotation @ GRASP_POINT - position
        turn = sum(np.cross(rotation[:, axis], PALM_AXES[axis]) for axis in range(3))
        return np.concatenate([place, -0.3 * turn])

    for _ in range(iterations):
        now = error(angles)
        columns = []
        for name in ARM_JOINTS:
            nudged = {**angles, name: angles[name] + 1e-5}
            columns.append((error(nudged) - now) / 1e-5)
        jacobian = np.stack(columns, axis=1)
        step = np.linalg.solve(jacobian.T @ jacobian + 1e-4 * np.eye(7), -jacobian.T @ now)
        for name, change in zip(ARM_JOINTS, step, strict=True):
            angles[name] += float(np.clip(change, -0.2, 0.2))
    return angles


def hand_angles(closed: float) -> list[float]:
    """Return the hand's targets, from open (0) to closed around a small cube (1)."""
    angles = {"thumb": np.array(THUMB_OPEN) + closed * (np.array(THUMB_CLOSED) - np.array(THUMB_OPEN))}
    targets = []
    for name in HAND_JOINTS:
        finger, _, number = name.split("_")
        if finger == "thumb":
            targets.append(float(angles["thumb"][int(number)]))
        else:
            targets.append(0.0 if number == "0" else OPEN[number] + closed * (CLOSED[number] - OPEN[number]))
    return targets


class ScriptedLift:
    """Grasps and lifts the cube of every environment of ``Epo-Kuka-OneArm-Regrasp-v0``."""

    def __init__(self, env: Any, cubes: np.ndarray) -> None:
        """Plan the way.

        Args:
            env: The environment, just reset.
            cubes: Positions of the cubes at rest, with their edges along the axes. Shape is (num_envs, 3).
        """
        self._env = env
        robot = env.scene["robot"]
        self._arm = env.action_manager.get_term("arm")
        low, high = robot.data.joint_pos_limits.torch[0].unbind(dim=-1)
        self._low, self._high = low[7:], high[7:]
        base = np.array(robot.cfg.init_state.pos)
        start = dict(_FACTS.extras["default_joint_pos"])
        heights = sorted({height for _, height, _ in PHASES})
        plans = {h: [solve_arm(cube + [0.0, 0.0, h], base, start) for cube in cubes] for h in heights}
        arms = {h: torch.tensor([[plan[name] for name in ARM_JOINTS] for plan in plans[h]]) for h in heights}
        self._knots = [(self._arm.processed_actions.clone(), 0.0)]
        self._knots += [(arms[height], closed) for _, height, closed in PHASES]
        self._lengths = [round(seconds / env.step_dt) for seconds, _, _ in PHASES]
        self.num_steps = sum(self._lengths)
        self._step = 0

    def act(self) -> torch.Tensor:
        """Return the next action."""
        phase, step = 0, self._step
        while phase < len(self._lengths) - 1 and step >= self._lengths[phase]:
            step -= self._lengths[phase]
            phase += 1
        share = min(1.0, (step + 1) / self._lengths[phase])
        (arm_from, hand_from), (arm_to, hand_to) = self._knots[phase], self._knots[phase + 1]
        self._step += 1
        arm = arm_from + share * (arm_to - arm_from)
        hand = torch.tensor(hand_angles(hand_from + share * (hand_to - hand_from)))
        moves = (arm - self._arm.processed_actions) / (self._arm.cfg.speed * self._env.step_dt)
        grip = (2.0 * hand - self._high - self._low) / (self._high - self._low)
        return torch.cat([moves, grip.expand(len(arm), -1)], dim=-1).clamp(-1.0, 1.0)


def prepare_lift(env: Any) -> ScriptedLift:
    """Put arms and cubes in their places and return the controller."""
    robot = env.scene["robot"]
    position = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=position)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position))
    env.action_manager.get_term("arm").reset(None)
    return ScriptedLift(env, put_cubes(env))


def put_cubes(env: Any) -> np.ndarray:
    """Lay the objects on the table, a little apart from environment to environment, and return their positions."""
    spread = torch.linspace(-1.0, 1.0, env.num_envs)
    goal = env.command_manager.get_term("goal")
    height = 0.53 + 0.025 * goal.object_scales[:, 2]
    position = torch.stack([0.03 * spread, 0.02 * spread.flip(0), height], dim=-1)
    pose = torch.cat([position + env.scene.env_origins, torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(env.num_envs, 4)], 1)
    env.scene["object"].write_root_pose_to_sim_index(root_pose=pose)
    env.scene["object"].write_root_velocity_to_sim_index(root_velocity=torch.zeros(env.num_envs, 6))
    return position.numpy().astype(float)
