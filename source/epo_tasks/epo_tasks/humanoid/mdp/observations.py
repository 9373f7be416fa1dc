"""Blocks of the Control Suite's observation."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.utils.math import quat_apply_inverse

from . import body


def head_height(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the height of the head's origin above the ground [m]. Shape is (num_envs, 1)."""
    return body.head_height(env).unsqueeze(-1)


def extremities(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return left hand, left foot, right hand and right foot from the torso, in torso axes [m]."""
    data = env.scene["robot"].data
    offset = body.end_positions(env, env.cfg.facts()) - data.root_link_pos_w.torch.unsqueeze(1)
    quat = data.root_link_quat_w.torch.unsqueeze(1).expand(-1, offset.shape[1], -1)
    return quat_apply_inverse(quat, offset).flatten(1)


def velocity(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return linear velocity in world axes [m/s], angular velocity in torso axes and joint velocities [rad/s]."""
    robot = env.scene["robot"]
    # Note: on ovphysx ``root_link_vel_w`` is the velocity of the torso's centre of mass, 5 cm from its origin
    linear = robot.data.body_link_vel_w.torch[:, robot.body_names.index(env.cfg.facts().root), :3]
    return torch.cat([linear, robot.data.root_link_ang_vel_b.torch, robot.data.joint_vel.torch], dim=-1)
