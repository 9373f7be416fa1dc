"""Ends of an episode."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .rewards import tracked


def cube_away(env: ManagerBasedRLEnv, distance: float) -> torch.Tensor:
    """Tell where the cube is at least ``distance`` from the goal position [m]: it fell off the hand."""
    return tracked(env).distance >= distance
