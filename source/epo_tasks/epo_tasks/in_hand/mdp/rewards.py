"""Rewards, each before its weight."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .goal import OrientationGoal


def tracked(env: ManagerBasedRLEnv) -> OrientationGoal:
    """Return the goal with this step taken in."""
    goal = env.command_manager.get_term("goal")
    assert isinstance(goal, OrientationGoal)
    return goal.track()


def distance(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the distance of the cube from the goal position [m]."""
    return tracked(env).distance


def orientation(env: ManagerBasedRLEnv, softening: float) -> torch.Tensor:
    """Return 1 / (angle between cube and goal + softening) [1/rad]."""
    return 1.0 / (tracked(env).error + softening)


def success(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return 1 in a step in which the goal is reached."""
    return tracked(env).success.float()
