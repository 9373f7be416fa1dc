"""What differs from robot to robot, pushes, and how an episode begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg
from isaaclab.utils.math import sample_uniform
from isaaclab_newton.physics import NewtonCfg

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedEnv


class RandomizeFriction(ManagerTermBase):
    """Give all shapes of a robot one random friction coefficient.

    Isaac Lab's ``randomize_rigid_body_material`` draws for every shape, so that there is no one number to observe; here
    it is used once for each of a few values.
    """

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedEnv) -> None:
        """Create the term; nothing is drawn yet."""
        super().__init__(cfg, env)
        self.friction = torch.ones(env.num_envs, device=env.device)
        """Friction coefficient of every robot. Shape is (num_envs,)."""

    def __call__(
        self,
        env: ManagerBasedEnv,
        env_ids: torch.Tensor | slice | None,
        friction_range: tuple[float, float],
        num_buckets: int,
        ground_friction: float,
        asset_cfg: SceneEntityCfg,
    ) -> None:
        """Draw the values and hand them to the engine.

        Args:
            env: The environment.
            env_ids: All robots, or some.
            friction_range: Least and largest value.
            num_buckets: Number of different values.
            ground_friction: Friction of the ground. PhysX takes the mean of both; Newton takes the larger one, so there
                the robot gets the mean and the ground nothing.
            asset_cfg: The robots.
        """
        ids = torch.arange(env.num_envs, device=env.device)[slice(None) if env_ids is None else env_ids]
        values = sample_uniform(*friction_range, (num_buckets,), env.device)
        bucket = torch.randint(num_buckets, (len(ids),), device=env.device)
        self.friction[ids] = values[bucket]
        takes_larger = isinstance(env.cfg.sim.physics, NewtonCfg)
        if takes_larger:
            _free_ground_of_friction(env)
        for index in bucket.unique().tolist():
            value = float(values[index])
            value = 0.5 * (value + ground_friction) if takes_larger else value
            params = {
                "static_friction_range": (value, value),
                "dynamic_friction_range": (value, value),
                "restitution_range": (0.0, 0.0),
                "num_buckets": 1,
                "asset_cfg": asset_cfg,
                "make_consistent": False,
            }
            term = mdp.randomize_rigid_body_material(EventTermCfg(func=self.__class__, params=params), env)
            term(env, ids[bucket == index], **params)


def _free_ground_of_friction(env: ManagerBasedEnv) -> None:
    """Set the friction of all fixed shapes in Newton's model to zero; the solver takes it over with the robots'."""
    import warp as wp

    model = env.sim.physics_manager.get_model()
    wp.to_torch(model.shape_material_mu)[wp.to_torch(model.shape_body) < 0] = 0.0


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
