"""How an episode begins."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.utils.array import index_fill_

from epo_tasks.robots.franka_panda import ARM_COLUMNS


def reset_arm(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, noise: float) -> None:
    """Put the joints of the arm near their default pose and the fingers into it, at rest.

    Args:
        env: The environment.
        env_ids: Environments that begin an episode.
        noise: Largest offset of a joint [rad].
    """
    robot = env.scene["robot"]
    position = robot.data.default_joint_pos.torch[env_ids].clone()
    low, high = robot.data.joint_pos_limits.torch[env_ids].unbind(dim=-1)
    arm = position[:, ARM_COLUMNS]
    arm += noise * (2.0 * torch.rand_like(arm) - 1.0)
    position = position.clamp(low, high)
    robot.write_joint_position_to_sim_index(position=position, env_ids=env_ids)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position), env_ids=env_ids)
    robot.actuators.target_command.position.torch[env_ids] = position
    index_fill_(robot.actuators.target_command.effort.torch, env_ids, 0.0)
