"""Configs of the actions of the Franka cube tasks."""

from collections.abc import Callable
from dataclasses import MISSING

from isaaclab.managers import ActionTermCfg
from isaaclab.utils import configclass


@configclass
class OperationalSpaceCfg(ActionTermCfg):
    """Pulls a hand along and about the axes of the environment; six actions in [-1, 1]."""

    class_type: type | Callable | str = "{DIR}.actions:OperationalSpace"

    joint_names: list[str] = MISSING
    """Joints of the arm."""

    body_name: str = MISSING
    """The hand."""

    body_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The point of it that is controlled, in its frame [m]."""

    position_scale: float = 0.1
    """Displacement that a full action asks for [m]. Default 0.1."""

    rotation_scale: float = 0.5
    """Rotation that a full action asks for [rad]. Default 0.5."""

    stiffness: float = 150.0
    """Acceleration per displacement and rotation [1/s^2]. Default 150. The damping is critical."""

    posture_stiffness: float = 10.0
    """Acceleration of joints towards the default pose, where the hand leaves them free [1/s^2]. Default 10."""


@configclass
class GripperCfg(ActionTermCfg):
    """Opens the fingers or closes them; one action, open from 0 on."""

    class_type: type | Callable | str = "{DIR}.actions:Gripper"

    joint_names: list[str] = MISSING
    """Joints of the fingers."""

    open_position: float = 0.04
    """Target of an open finger [m]. Default 0.04."""

    closed_position: float = 0.0
    """Target of a closed finger [m]. Default 0."""

    target_speed: float | None = None
    """Fastest motion of a target [m/s], for an engine that knows no speed limit of joints. Default None: any."""
