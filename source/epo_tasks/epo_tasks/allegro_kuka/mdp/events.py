"""How an episode begins."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv


def reset_arm(
    env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, asset_name: str, noise: float, max_velocity: float
) -> None:
    """Put every joint a random part of the way from its rest position towards a random angle within its limits.

    Args:
        env: The environment.
        env_ids: Environments that begin an episode.
        asset_name: The arm.
        noise: Part of the way.
        max_velocity: Largest random velocity [rad/s].
    """
    arm = env.scene[asset_name]
    rest = arm.data.default_joint_pos.torch[env_ids]
    low, high = arm.data.joint_pos_limits.torch[env_ids].unbind(dim=-1)
    position = rest + noise * (low - rest + (high - low) * torch.rand_like(rest))
    # thumb_joint_0 rests below its lower limit in the reference; we keep it inside
    arm.write_joint_position_to_sim_index(position=position.clamp(low, high), env_ids=env_ids)
    velocity = max_velocity * (2.0 * torch.rand_like(rest) - 1.0)
    arm.write_joint_velocity_to_sim_index(velocity=velocity, env_ids=env_ids)


def reset_object(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice) -> None:
    """Release the object above the table."""
    env.command_manager.get_term("goal").place_object(env_ids)
