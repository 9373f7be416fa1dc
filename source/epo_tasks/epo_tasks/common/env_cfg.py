"""Config that all tasks share."""

from __future__ import annotations

from collections.abc import Callable

from isaaclab.envs import ManagerBasedRLEnvCfg
from isaaclab.utils import configclass

from epo_lab.base.device import default_device

from .randomization_cfg import EpisodeNoiseCfg, RandomizationCfg


@configclass
class VideoViewCfg:
    """Where the camera of a video stands."""

    follow: str | None = None
    """Scene entity that the camera goes along with, above its ground point. Default None: it stays at the origin."""

    eye: tuple[float, float, float] = (2.0, -2.0, 1.5)
    """Position of the camera from there [m]."""

    target: tuple[float, float, float] = (0.0, 0.0, 0.5)
    """Point the camera looks at, from there [m]."""


@configclass
class EpoEnvCfg(ManagerBasedRLEnvCfg):
    """Base of the tasks' configs."""

    clip_reward_at_zero: bool = False
    """Whether the total reward of a step is clipped at zero. Default False."""

    episode_sums: dict[str, Callable] = {}
    """Functions of the environment, called in every step, whose sums over an episode are logged as
    ``Metrics/<name>``. Default none."""

    measures: dict[str, Callable] = {}
    """Functions of the environment, called in every step before episodes end, whose values (one for each environment)
    are in the extras under their name: a fitness, as ``extras:<name>``, or a score. Default none."""

    action_noise: EpisodeNoiseCfg | None = None
    """Noise in the actions of the policy. Default None: none."""

    video_views: dict[str, VideoViewCfg] = {"front": VideoViewCfg()}
    """Views of ``play.py --video``; the first is the default."""

    settle_steps: int = 30
    """Steps with a zero action before a picture of the task, so that what was dropped lies still. Default 30."""

    def __post_init__(self):
        self.sim.device = default_device()
        self.sim.render_interval = self.decimation

    def complete(self) -> None:
        """Derive what depends on other settings, once all overrides are in; called before the scene is built."""

    def note(self) -> str:
        """Return what a score must be read with, because it makes the task another one; nothing if all is as it was."""
        return ""


@configclass
class RandomizableEnvCfg(EpoEnvCfg):
    """Base of tasks whose reference has an optional randomisation."""

    randomize: bool = False
    """Whether bodies, joints, gravity, observations and actions are randomised. Default False."""

    randomization: RandomizationCfg = RandomizationCfg(ramp_steps=3000)
    """By how much, if so. The default is that of legged robots."""

    def complete(self) -> None:
        """Add the randomisation; whoever adds observations does so before."""
        if self.randomize:
            self.randomization.apply(self)
