"""Rewards of one step, unweighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import ManagerTermBase, RewardTermCfg, SceneEntityCfg
from isaaclab.utils.array import index_fill_

from .goals import tracked

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.sensors import ContactSensor

_ROBOT = SceneEntityCfg("robot")


def goal_velocity(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Return the share of the commanded speed at which the base moves towards the goal, at most 1."""
    robot: Articulation = env.scene[asset_cfg.name]
    goals = tracked(env)
    towards = (robot.data.root_lin_vel_w.torch[:, :2] * goals.direction).sum(dim=-1)
    return torch.minimum(towards, goals.speed) / (goals.speed + 1e-5)


def heading(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return how well the robot looks towards the goal, 1 if straight."""
    return torch.exp(-tracked(env).heading_error.abs())


def vertical_velocity(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Return the squared velocity of the base along its own z [m^2/s^2], half of it where there are obstacles."""
    robot: Articulation = env.scene[asset_cfg.name]
    return robot.data.root_lin_vel_b.torch[:, 2].square() * torch.where(tracked(env).flat, 1.0, 0.5)


def orientation(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Return the squared horizontal part of the projected gravity, only on flat tracks."""
    robot: Articulation = env.scene[asset_cfg.name]
    return robot.data.projected_gravity_b.torch[:, :2].square().sum(dim=-1) * tracked(env).flat


def collision(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, threshold: float) -> torch.Tensor:
    """Return how many of the bodies are touched with more than the threshold [N]."""
    sensor: ContactSensor = env.scene[sensor_cfg.name]
    forces = sensor.data.net_forces_w.torch[:, sensor_cfg.body_ids]
    return (forces.norm(dim=-1) > threshold).sum(dim=-1).float()


def action_rate(env: ManagerBasedRLEnv, limit: float) -> torch.Tensor:
    """Return the length of the change of the action, both clipped at the limit."""
    actions = env.action_manager.action, env.action_manager.prev_action
    now, before = (action.clamp(-limit, limit) for action in actions)
    return (now - before).norm(dim=-1)


def posture(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Return the sum of the squared differences of the joints from their default angles [rad^2]."""
    robot: Articulation = env.scene[asset_cfg.name]
    away = robot.data.joint_pos.torch - robot.data.default_joint_pos.torch
    return away[:, asset_cfg.joint_ids].square().sum(dim=-1)


def foot_stumble(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return 1 if the horizontal force on any foot is more than four times the vertical one."""
    sensor: ContactSensor = env.scene[sensor_cfg.name]
    forces = sensor.data.net_forces_w.torch[:, sensor_cfg.body_ids]
    return (forces[..., :2].norm(dim=-1) > 4.0 * forces[..., 2].abs()).any(dim=-1).float()


def foot_edge(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg, least_level: int) -> torch.Tensor:
    """Return how many feet stand at an edge of the terrain, for robots that are at the least level or above."""
    robot: Articulation = env.scene[asset_cfg.name]
    goals = tracked(env)
    feet = robot.data.body_link_pos_w.torch[:, asset_cfg.body_ids, :2]
    count = (goals.terrain.height_field.at_edge(feet) & goals.feet_contact).sum(dim=-1)
    return count * (goals.terrain.terrain_levels >= least_level)


class JointAcceleration(ManagerTermBase):
    """The sum of the squared joint accelerations, from policy step to policy step [rad^2/s^4]."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        super().__init__(cfg, env)
        self._robot: Articulation = env.scene["robot"]
        self._before = torch.zeros_like(self._robot.data.joint_vel.torch)

    def __call__(self, env: ManagerBasedRLEnv) -> torch.Tensor:
        """Return the value of this step."""
        velocity = self._robot.data.joint_vel.torch
        change = (velocity - self._before) / env.step_dt
        self._before[:] = velocity
        return change.square().sum(dim=-1)

    def reset(self, env_ids=None) -> None:
        """Begin at rest."""
        index_fill_(self._before, env_ids, 0.0)


class TorqueChange(ManagerTermBase):
    """The sum of the squared changes of the torques from policy step to policy step [N^2 m^2]."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        super().__init__(cfg, env)
        self._robot: Articulation = env.scene["robot"]
        self._before = torch.zeros_like(self._robot.actuators.applied_effort.torch)

    def __call__(self, env: ManagerBasedRLEnv) -> torch.Tensor:
        """Return the value of this step."""
        torque = self._robot.actuators.applied_effort.torch
        change = torque - self._before
        self._before[:] = torque
        return change.square().sum(dim=-1)

    def reset(self, env_ids=None) -> None:
        """Begin without torques."""
        index_fill_(self._before, env_ids, 0.0)
