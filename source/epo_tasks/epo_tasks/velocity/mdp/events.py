"""Reset events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils.math import sample_uniform

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv


def reset_joints_around_default(
    env: ManagerBasedEnv,
    env_ids: torch.Tensor | slice,
    position_scale: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
) -> None:
    """Set every joint to its default angle times a random factor, with a random velocity [rad/s].

    Isaac Lab's ``reset_joints_by_scale`` scales the default velocity too, which is zero.
    """
    robot: Articulation = env.scene[asset_cfg.name]
    position = robot.data.default_joint_pos.torch[env_ids]
    position = position * sample_uniform(*position_scale, position.shape, position.device)
    velocity = sample_uniform(*velocity_range, position.shape, position.device)
    robot.write_joint_position_to_sim_index(position=position, env_ids=env_ids)
    robot.write_joint_velocity_to_sim_index(velocity=velocity, env_ids=env_ids)
