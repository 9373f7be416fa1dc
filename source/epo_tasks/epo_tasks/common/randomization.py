"""What differs from environment to environment and from episode to episode, beyond what Isaac Lab offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, ManagerTermBase, SceneEntityCfg
from isaaclab.utils.math import sample_uniform
from isaaclab.utils.noise import NoiseModel
from isaaclab_newton.physics import NewtonCfg

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv

    from .randomization_cfg import EpisodeNoiseCfg


class EpisodeNoise(NoiseModel):
    """White noise, and an offset that is drawn anew with each episode; both may grow from nothing."""

    def __init__(self, noise_model_cfg: EpisodeNoiseCfg, num_envs: int, device: str) -> None:
        """Create the noise; see Isaac Lab's."""
        super().__init__(noise_model_cfg, num_envs, device)
        self._cfg = noise_model_cfg
        self._unit = 1.0 / torch.tensor(noise_model_cfg.scale, device=device)
        self._offset: torch.Tensor | None = None
        self._num_calls = 0

    def reset(self, env_ids: Sequence[int] | torch.Tensor | slice | None = None) -> None:
        """Draw the offsets of these environments."""
        if self._offset is not None:
            ids = slice(None) if env_ids is None else env_ids
            self._offset[ids] = self._cfg.per_episode * torch.randn_like(self._offset[ids])

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return the data with noise; it is called once a step."""
        if self._offset is None:
            self._offset = torch.empty_like(data)
            self.reset()
        noise = self._cfg.white * torch.randn_like(data) + self._offset
        share = share_of_ramp(self._num_calls, self._cfg.ramp_steps)
        self._num_calls += 1
        return data + share * self._unit * noise


def share_of_ramp(step: int, ramp_steps: int) -> float:
    """Return how much of a randomisation is in force at a step: all of it from ``ramp_steps`` on."""
    return min(1.0, step / ramp_steps) if ramp_steps > 0 else 1.0


class RampEvents(ManagerTermBase):
    """Curriculum term that lets the ranges of events grow linearly from where they change nothing."""

    def __init__(self, cfg, env) -> None:
        """Note the full ranges."""
        super().__init__(cfg, env)
        self._full = {name: dict(env.event_manager.get_term_cfg(name).params) for name in cfg.params["identities"]}

    def __call__(self, env, env_ids, identities: dict[str, float], ramp_steps: int) -> float:
        """Set the ranges and return the share of the full ones.

        Args:
            env: The environment.
            env_ids: Not used; ranges are those of all environments.
            identities: Names of the events, and the value that changes nothing: 1 for factors, 0 for addends.
            ramp_steps: Number of steps until ranges are full.
        """
        share = share_of_ramp(env.common_step_counter, ramp_steps)
        for name, identity in identities.items():
            params = env.event_manager.get_term_cfg(name).params
            for key, value in self._full[name].items():
                if key.endswith("_distribution_params") and value is not None:
                    params[key] = tuple(_towards(bound, identity, share) for bound in value)
        return share


def _towards(bound, identity: float, share: float):
    if isinstance(bound, (list, tuple)):
        return [_towards(part, identity, share) for part in bound]
    return identity + share * (bound - identity)


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
