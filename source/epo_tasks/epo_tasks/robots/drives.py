"""Implicit position drives, as several robots have them."""

from collections.abc import Sequence
from typing import Any

from isaaclab.actuators import ImplicitActuatorCfg

from .facts import RobotFacts

_FIELDS = {
    "stiffness": "drive_stiffness",
    "damping": "drive_damping",
    "joint_effort_limit": "drive_effort",
    "joint_velocity_limit": "velocity",
    "armature": "armature",
    "friction": "friction",
}


def implicit_drives(facts: RobotFacts, joints: Sequence[str] | None = None, **changes: Any) -> ImplicitActuatorCfg:
    """Return the drives that the solver integrates implicitly, with gains and limits from the facts.

    Args:
        facts: The robot.
        joints: Names of the driven joints. Defaults to None, in which case all moving joints are.
        changes: Values that replace the facts', for all these joints.
    """
    joints = facts.joint_names if joints is None else joints
    values = {field: {name: facts.per_joint(key)[name] for name in joints} for field, key in _FIELDS.items()}
    return ImplicitActuatorCfg(joint_names_expr=list(joints), **values | changes)
