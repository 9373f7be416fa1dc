"""Ends of an episode."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .rewards import tracked


def success(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Tell where the cube is where it shall be."""
    return tracked(env).success


def lifted(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Tell where the cube is off the table by more than the task allows."""
    return tracked(env).lifted


def time_out(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Tell where the time is up and nothing else ends the episode."""
    goal = tracked(env)
    return goal.time_is_up & ~goal.decided
