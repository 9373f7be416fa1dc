"""Ends of an episode."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .rewards import tracked


def object_dropped(env: ManagerBasedRLEnv, height: float) -> torch.Tensor:
    """Tell where the object is below a height [m]: it fell off the table."""
    return tracked(env).object_pos[:, 2] < height


def enough_successes(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Tell where the episode had its last success."""
    goal = tracked(env)
    return goal.successes >= goal.cfg.max_successes


def goal_time_out(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Tell where the goal was not reached in time."""
    goal = tracked(env)
    return goal.goal_steps >= goal.goal_length - 1


def hand_too_far(env: ManagerBasedRLEnv, distance: float) -> torch.Tensor:
    """Tell where a fingertip is farther from the object than ``distance`` [m]."""
    return tracked(env).tip_distances.amax(dim=-1) > distance
