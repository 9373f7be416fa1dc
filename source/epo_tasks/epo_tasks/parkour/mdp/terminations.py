"""How an episode ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import SceneEntityCfg

from .goals import tracked
from .observations import roll_pitch

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv


def tilted(env: ManagerBasedRLEnv, limit: float) -> torch.Tensor:
    """Return whether roll or pitch is beyond the limit [rad]."""
    return (roll_pitch(env).abs() > limit).any(dim=-1)


def fell(env: ManagerBasedRLEnv, height: float, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """Return whether the base is below a height in the world [m]."""
    robot: Articulation = env.scene[asset_cfg.name]
    return robot.data.root_link_pos_w.torch[:, 2] < height


def all_goals_reached(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return whether the track is done."""
    return tracked(env).finished
