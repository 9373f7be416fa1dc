"""How an episode begins."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .goal import turned_about_x_and_y


def reset_cube(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, noise: float) -> None:
    """Put the cube near its start, turned at random, at rest.

    Args:
        env: The environment.
        env_ids: Environments that begin an episode.
        noise: Largest offset along each axis [m].
    """
    cube = env.scene["object"]
    pose = cube.data.default_root_pose.torch[env_ids].clone()
    pose[:, :3] += env.scene.env_origins[env_ids] + noise * (2.0 * torch.rand_like(pose[:, :3]) - 1.0)
    pose[:, 3:] = turned_about_x_and_y(len(pose), env.device)
    cube.write_root_pose_to_sim_index(root_pose=pose, env_ids=env_ids)
    cube.write_root_velocity_to_sim_index(root_velocity=torch.zeros_like(pose[:, :6]), env_ids=env_ids)


def reset_hand(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, noise: float) -> None:
    """Put every joint a part of the way from its rest position towards a random angle, with its target, at rest.

    Args:
        env: The environment.
        env_ids: Environments that begin an episode.
        noise: Part of the way.
    """
    hand = env.scene["robot"]
    rest = hand.data.default_joint_pos.torch[env_ids]
    low, high = hand.data.joint_pos_limits.torch[env_ids].unbind(dim=-1)
    position = (rest + noise * (low - rest + (high - low) * torch.rand_like(rest))).clamp(low, high)
    hand.write_joint_position_to_sim_index(position=position, env_ids=env_ids)
    hand.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position), env_ids=env_ids)
    hand.actuators.target_command.position.torch[env_ids] = position
