"""Config of a randomised task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isaaclab.envs import mdp
from isaaclab.managers import CurriculumTermCfg, EventTermCfg, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils import configclass
from isaaclab.utils.noise import NoiseCfg, NoiseModelCfg

from .randomization import RampEvents, RandomizeFriction

if TYPE_CHECKING:
    from .env_cfg import EpoEnvCfg

REFRESH_STEPS = 720
"""Steps for which an environment keeps what was drawn for it, at least."""


@configclass
class EpisodeNoiseCfg(NoiseModelCfg):
    """Gaussian noise of every step, and of every episode."""

    class_type: str = "{DIR}.randomization:EpisodeNoise"
    noise_cfg: NoiseCfg | None = None

    white: float = 0.0
    """Standard deviation of what is drawn in every step. Default 0."""

    per_episode: float = 0.0
    """Standard deviation of what is drawn with every episode. Default 0."""

    scale: float | tuple[float, ...] = 1.0
    """What the data are multiplied by afterwards; the noise is meant after that. Default 1."""

    ramp_steps: int = 0
    """Number of steps over which the noise grows from nothing. Default 0: it is there at once."""


@configclass
class RandomizationCfg:
    """How much differs from environment to environment and from episode to episode.

    Masses and friction are drawn once; stiffness, damping and limits of the joints with an episode, at most every 720
    steps; gravity every 720 steps, on PhysX one for all environments.
    """

    stiffness: tuple[float, float] = (0.5, 1.5)
    """Least and largest factor of the stiffness of each joint."""

    damping: tuple[float, float] = (0.5, 1.5)
    """Least and largest factor of the damping of each joint."""

    gain_distribution: str = "uniform"
    """How these factors are spread: ``uniform`` or ``log_uniform``."""

    joint_limit_std: float = 0.01
    """Standard deviation of what is added to each limit of a joint [rad]."""

    mass: tuple[float, float] = (0.5, 1.5)
    """Least and largest factor of each body's mass and inertia."""

    friction: tuple[float, float] = (0.7, 1.3)
    """Least and largest factor of the friction."""

    gravity_std: float = 0.4
    """Standard deviation of what is added to each component of gravity [m/s^2]."""

    observation_noise: tuple[float, float] = (0.002, 0.0)
    """Standard deviations of the noise of every step and of every episode in each observed number."""

    action_noise: tuple[float, float] = (0.02, 0.0)
    """Standard deviations of the noise of every step and of every episode in each action."""

    ramp_steps: int = 0
    """Number of steps over which all but masses and friction grow from nothing. Default 0: they are there at once."""

    objects: tuple[str, ...] = ()
    """Loose bodies of the scene. Default none: the friction is that of the robot on the ground."""

    def apply(self, cfg: EpoEnvCfg) -> None:
        """Add the events and the noise to the config of a task, whose robot is the scene's ``robot``."""
        events, whole_robot = cfg.events, SceneEntityCfg("robot", joint_names=".*")
        events.random_gains = self.with_episodes(
            mdp.randomize_actuator_gains,
            asset_cfg=whole_robot,
            stiffness_distribution_params=self.stiffness,
            damping_distribution_params=self.damping,
            operation="scale",
            distribution=self.gain_distribution,
        )
        addend = (0.0, self.joint_limit_std)
        events.random_joint_limits = self.with_episodes(
            mdp.randomize_joint_parameters,
            asset_cfg=whole_robot,
            lower_limit_distribution_params=addend,
            upper_limit_distribution_params=addend,
            operation="add",
            distribution="gaussian",
        )
        period = REFRESH_STEPS * cfg.decimation * cfg.sim.dt
        events.random_gravity = EventTermCfg(
            func=mdp.randomize_physics_scene_gravity,
            mode="interval",
            is_global_time=True,
            interval_range_s=(period, period),
            params={
                "gravity_distribution_params": ([0.0] * 3, [self.gravity_std] * 3),
                "operation": "add",
                "distribution": "gaussian",
            },
        )
        for name in ("robot", *self.objects):
            setattr(events, f"random_mass_{name}", self._mass(name))
            if self.objects:
                setattr(events, f"random_friction_{name}", self._friction(name))
        if not self.objects:
            events.random_friction = EventTermCfg(
                func=RandomizeFriction,
                mode="startup",
                params={
                    "friction_range": self.friction,
                    "num_buckets": 64,
                    "ground_friction": 1.0,
                    "asset_cfg": SceneEntityCfg("robot"),
                },
            )
        self._add_noise(cfg)
        if self.ramp_steps > 0:
            identities = {"random_gains": 1.0, "random_joint_limits": 0.0, "random_gravity": 0.0}
            params = {"identities": identities, "ramp_steps": self.ramp_steps}
            cfg.curriculum = {"randomization": CurriculumTermCfg(func=RampEvents, params=params)}

    def with_episodes(self, func, **params) -> EventTermCfg:
        """Return an event of the beginning of an episode, unless the last one is but a few steps ago."""
        return EventTermCfg(func=func, mode="reset", min_step_count_between_reset=REFRESH_STEPS, params=params)

    def _mass(self, name: str) -> EventTermCfg:
        params = {
            "asset_cfg": SceneEntityCfg(name),
            "mass_distribution_params": self.mass,
            "operation": "scale",
            "recompute_inertia": True,
        }
        return EventTermCfg(func=mdp.randomize_rigid_body_mass, mode="startup", params=params)

    def _friction(self, name: str) -> EventTermCfg:
        params = {
            "asset_cfg": SceneEntityCfg(name),
            "static_friction_range": self.friction,
            "dynamic_friction_range": self.friction,
            "restitution_range": (0.0, 0.0),
            "num_buckets": 250,
            "make_consistent": True,
        }
        return EventTermCfg(func=mdp.randomize_rigid_body_material, mode="startup", params=params)

    def _add_noise(self, cfg: EpoEnvCfg) -> None:
        white, per_episode = self.observation_noise
        policy = cfg.observations.policy
        policy.enable_corruption = True
        for term in vars(policy).values():
            if isinstance(term, ObservationTermCfg):
                scale = 1.0 if term.scale is None else term.scale
                term.noise = EpisodeNoiseCfg(
                    white=white, per_episode=per_episode, scale=scale, ramp_steps=self.ramp_steps
                )
        white, per_episode = self.action_noise
        cfg.action_noise = EpisodeNoiseCfg(white=white, per_episode=per_episode, ramp_steps=self.ramp_steps)
