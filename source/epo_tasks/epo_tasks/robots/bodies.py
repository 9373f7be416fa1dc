"""What PhysX is told of rigid bodies: damping and limits, all named, so that no engine's default decides a constant."""

from __future__ import annotations

import math

from isaaclab_newton.sim.schemas import MujocoRigidBodyCfg
from isaaclab_physx.sim.schemas import PhysxRigidBodyCfg

MAX_SPIN = 64.0
"""Fastest rotation of a body [rad/s]: Isaac Gym's default."""

MAX_SPEED = 1000.0
"""Fastest motion of a body [m/s]: Isaac Gym's default."""

OBJECT_DAMPING = 0.5
"""Angular damping of a loose object [1/s]: Isaac Gym's default, which the reference tasks leave as it is."""


def body(
    *,
    angular_damping: float,
    max_depenetration_velocity: float,
    linear_damping: float = 0.0,
    max_spin: float = MAX_SPIN,
    **physx: float | int | bool,
) -> PhysxRigidBodyCfg:
    """Return the properties of one body.

    Args:
        angular_damping: Share of the angular velocity that is lost in a second [1/s].
        max_depenetration_velocity: Fastest motion with which bodies that overlap are pushed apart [m/s].
        linear_damping: The same for the linear velocity [1/s]. Defaults to 0.
        max_spin: Fastest rotation [rad/s]. Defaults to 64.
        physx: More fields of ``PhysxRigidBodyCfg``.
    """
    return PhysxRigidBodyCfg(
        angular_damping=angular_damping,
        linear_damping=linear_damping,
        # USD counts angles in degrees
        max_angular_velocity=math.degrees(max_spin),
        max_linear_velocity=MAX_SPEED,
        max_depenetration_velocity=max_depenetration_velocity,
        **physx,
    )


def links(*, weightless: bool = False, **values: float) -> dict[str, list]:
    """Return the properties of all links of a robot.

    Args:
        weightless: Whether gravity does not act on them. Defaults to False.
        values: Arguments of :func:`body`.
    """
    if not weightless:
        return {"/[^/]*": [body(**values)]}
    # Newton knows no gravity switch for a link; full gravity compensation is the same
    return {"/[^/]*": [body(**values, disable_gravity=True), MujocoRigidBodyCfg(gravcomp=1.0)]}
