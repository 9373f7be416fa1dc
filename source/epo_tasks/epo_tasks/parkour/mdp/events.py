"""What differs from robot to robot, pushes, and how an episode begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg
from isaaclab.utils.math import sample_uniform

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv


class RandomizeMotorStrength(ManagerTermBase):
    """Scale stiffness and damping of every motor by factors of their own."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedEnv) -> None:
        """Create the term; nothing is drawn yet."""
        super().__init__(cfg, env)
        asset_cfg = cfg.params["asset_cfg"]
        self._robot: Articulation = env.scene[asset_cfg.name]
        self._default = self._gains().clone()
        factors = cfg.params["strength_range"]
        self._params = {
            "asset_cfg": asset_cfg,
            "stiffness_distribution_params": factors,
            "damping_distribution_params": factors,
            "operation": "scale",
            "distribution": "uniform",
        }
        self._randomize = mdp.randomize_actuator_gains(EventTermCfg(func=self.__class__, params=self._params), env)
        self.strength = torch.ones_like(self._default)
        """Factors of the stiffness of all joints, then of the damping. Shape is (num_envs, 24)."""
        self.drawn = False
        """Whether the factors have been drawn."""

    def __call__(self, env: ManagerBasedEnv, env_ids: Any, strength_range: Any, asset_cfg: SceneEntityCfg) -> None:
        """Draw the factors."""
        self._randomize(env, env_ids, **self._params)
        self.strength[:] = self._gains() / self._default
        self.drawn = True

    def _gains(self) -> torch.Tensor:
        collection, name = self._robot.actuators, "legs"
        if name in collection._native_group_names:
            # Newton runs the motors itself and keeps their gains; to import it takes seconds
            from isaaclab.actuators.newton import read_group_parameter

            gains = [read_group_parameter(collection, name, "controller", gain) for gain in ("kp", "kd")]
        else:
            gains = [collection[name].stiffness, collection[name].damping]
        return torch.cat(gains, dim=-1)


def push_by_overwriting_velocity(
    env: ManagerBasedEnv,
    env_ids: torch.Tensor | slice | None,
    speed: float,
    asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
) -> None:
    """Set the horizontal velocity of the base to random values up to ``speed`` [m/s] along x and y."""
    robot: Articulation = env.scene[asset_cfg.name]
    ids = slice(None) if env_ids is None else env_ids
    velocity = robot.data.root_com_vel_w.torch[ids].clone()
    velocity[:, :2] = sample_uniform(-speed, speed, (len(velocity), 2), velocity.device)
    robot.write_root_velocity_to_sim_index(root_velocity=velocity, env_ids=env_ids)


def reset_joints_beyond_default(
    env: ManagerBasedEnv,
    env_ids: torch.Tensor | slice,
    offset_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = SceneEntityCfg("robot"),
) -> None:
    """Set every joint to its default angle plus a random offset [rad], within its limits, at rest."""
    robot: Articulation = env.scene[asset_cfg.name]
    position = robot.data.default_joint_pos.torch[env_ids]
    position = position + sample_uniform(*offset_range, position.shape, position.device)
    low, high = robot.data.joint_pos_limits.torch[env_ids].unbind(dim=-1)
    robot.write_joint_position_to_sim_index(position=position.clamp(low, high), env_ids=env_ids)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position), env_ids=env_ids)
