"""Configs of the actions that Isaac Lab does not have."""

from collections.abc import Callable
from dataclasses import MISSING

from isaaclab.managers import ActionTermCfg
from isaaclab.utils import configclass

from epo_tasks.common.actions_cfg import SpinLimitCfg


@configclass
class JointTargetSpeedActionCfg(ActionTermCfg):
    """Moves joint targets from where they are, not from where the joints are."""

    class_type: type | Callable | str = "{DIR}.actions:JointTargetSpeedAction"

    joint_names: list[str] = MISSING
    """Names of the joints, in the order of the actions."""

    speed: float = 10.0
    """Speed of a target at full action [rad/s]. Default 10."""


@configclass
class RandomForceCfg(ActionTermCfg):
    """Pushes an object at random; takes no action."""

    class_type: type | Callable | str = "{DIR}.actions:RandomForce"

    scale: float = 2.0
    """Standard deviation of a force, over the mass [m/s^2]. Default 2."""

    mass: float | None = 0.15
    """Mass for all objects [kg]. Default 0.15, as in the reference, for light and heavy ones; None: its own."""

    probability: tuple[float, float] = (0.001, 0.1)
    """Range of the probability of a new force in a step; drawn log-uniformly for each episode."""

    decay: float = 0.99
    """Factor on a force in ``decay_interval``. Default 0.99."""

    decay_interval: float = 0.08
    """Time [s]. Default 0.08."""


@configclass
class SpeedLimitCfg(SpinLimitCfg):
    """Slows an object that spins or was just placed; takes no action."""

    class_type: type | Callable | str = "{DIR}.actions:SpeedLimit"

    release_speed: float = 1.0
    """Fastest motion of an object that was just placed [m/s]. Default 1: who falls freely stays below."""

    release_time: float = 0.1
    """Time since it was placed [s]. Default 0.1."""
