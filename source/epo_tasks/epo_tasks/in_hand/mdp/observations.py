"""Blocks of the observation, in environment axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import SceneEntityCfg

from .goal import OrientationGoal

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv


def _goal(env: ManagerBasedRLEnv) -> OrientationGoal:
    goal = env.command_manager.get_term("goal")
    assert isinstance(goal, OrientationGoal)
    return goal


def cube_pose(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return position [m] and quaternion (x, y, z, w) of the cube."""
    goal = _goal(env)
    return torch.cat([goal.object_pos, goal.object.data.root_link_quat_w.torch], dim=-1)


def cube_lin_vel(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the linear velocity of the cube [m/s]."""
    return _goal(env).object.data.root_com_lin_vel_w.torch


def cube_ang_vel(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the angular velocity of the cube [rad/s]."""
    return _goal(env).object.data.root_com_ang_vel_w.torch


def goal_pose(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return position [m] and quaternion (x, y, z, w) of the goal."""
    return _goal(env).command


def goal_difference(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the rotation from goal to cube, as a quaternion (x, y, z, w)."""
    return _goal(env).difference


def fingertip_poses(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return position [m] and quaternion (x, y, z, w) of every fingertip."""
    hand: Articulation = env.scene[asset_cfg.name]
    pose = hand.data.body_link_pose_w.torch[:, asset_cfg.body_ids].clone()
    pose[..., :3] -= env.scene.env_origins.unsqueeze(1)
    return pose.flatten(1)


def fingertip_velocities(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return linear [m/s] and angular velocity [rad/s] of every fingertip."""
    hand: Articulation = env.scene[asset_cfg.name]
    return hand.data.body_com_vel_w.torch[:, asset_cfg.body_ids].flatten(1)


def joint_torques(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return the torque that joints pass on about their axes [N m]; ``sensor_cfg`` names the links behind them."""
    # our joint frames have their x along the axis
    return env.scene.sensors[sensor_cfg.name].data.torque.torch[:, sensor_cfg.body_ids, 0]
