"""Configs of the joint targets and torques, and of what acts on an object."""

from collections.abc import Callable

from isaaclab.envs.mdp.actions.actions_cfg import (
    JointEffortActionCfg,
    JointPositionActionCfg,
    JointPositionToLimitsActionCfg,
)
from isaaclab.managers import ActionTermCfg
from isaaclab.utils import configclass

from epo_tasks.robots.bodies import MAX_SPIN, OBJECT_DAMPING


@configclass
class JointTargetCfg(JointPositionActionCfg):
    """Isaac Lab's joint position action, with one write to the engine less."""

    class_type: type | Callable | str = "{DIR}.actions:JointTarget"


@configclass
class JointTargetToLimitsCfg(JointPositionToLimitsActionCfg):
    """Isaac Lab's joint position to limits action, with one write to the engine less."""

    class_type: type | Callable | str = "{DIR}.actions:JointTargetToLimits"


@configclass
class JointTorqueCfg(JointEffortActionCfg):
    """Isaac Lab's joint effort action, with one write to the engine less."""

    class_type: type | Callable | str = "{DIR}.actions:JointTorque"


@configclass
class SpinLimitCfg(ActionTermCfg):
    """Damps and limits the spin of an object on an engine that cannot; takes no action."""

    class_type: type | Callable | str = "{DIR}.actions:SpinLimit"

    spin: float = MAX_SPIN
    """Fastest spin [rad/s]. Default 64."""

    damping: float = OBJECT_DAMPING
    """Share of the spin that is lost in a second [1/s]. Default 0.5."""
