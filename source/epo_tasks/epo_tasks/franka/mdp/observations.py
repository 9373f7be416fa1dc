"""Blocks of the observation, in the frame of the environment.

A quaternion and its negative are one rotation. A cube's has a sign that makes w positive; a hand that points down has w
near 0, where that sign would jump, and x near 1: the hand's makes x positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .goal import CubeGoal

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv


def goal_of(env: ManagerBasedRLEnv) -> CubeGoal:
    """Return the goal term."""
    goal = env.command_manager.get_term("goal")
    assert isinstance(goal, CubeGoal)
    return goal


def cube_pose(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return quaternion (x, y, z, w) and position [m] of the cube."""
    goal = goal_of(env)
    quat = goal.cube.data.root_link_quat_w.torch
    return torch.cat([torch.where(quat[:, 3:] < 0.0, -quat, quat), goal.cube_pos], dim=-1)


def goal_from_cube(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the position of the goal, or of the cube to stack on, from the cube [m]."""
    goal = goal_of(env)
    return goal.goal_pos - goal.cube_pos


def grip_pose(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return position [m] and quaternion (x, y, z, w) of the grip site."""
    position, quat = goal_of(env).hand.pose()
    return torch.cat([position, torch.where(quat[:, :1] < 0.0, -quat, quat)], dim=-1)


def fingers(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return how far left and right finger are open [m]."""
    return goal_of(env).hand.fingers()
