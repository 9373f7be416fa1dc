"""Configs of the joint targets and torques."""

from collections.abc import Callable

from isaaclab.envs.mdp.actions.actions_cfg import (
    JointEffortActionCfg,
    JointPositionActionCfg,
    JointPositionToLimitsActionCfg,
)
from isaaclab.utils import configclass


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
