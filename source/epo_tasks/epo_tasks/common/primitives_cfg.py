"""Config of a fixed or rigid body made of boxes, cylinders, capsules and spheres."""

from collections.abc import Callable
from dataclasses import MISSING

from isaaclab.sim.schemas import MassPropertiesCfg, RigidBodyBaseCfg
from isaaclab.sim.spawners.spawner_cfg import RigidObjectSpawnerCfg
from isaaclab.utils import configclass
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from epo_tasks.robots.bodies import OBJECT_DAMPING, body

GREY = (0.55, 0.57, 0.60)


@configclass
class PrimitiveCfg:
    """A shape of a body."""

    type: str = MISSING
    """``box``, ``cylinder``, ``capsule`` or ``sphere``."""

    size: dict[str, float] = MISSING
    """Edges ``x``, ``y`` and ``z`` of a box; ``radius`` and, along its z, ``length`` of the others [m]."""

    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Its position in the body [m]."""

    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Its rotation about the fixed axes of the body [rad]."""


@configclass
class PrimitivesCfg(RigidObjectSpawnerCfg):
    """Spawns one body of several collision shapes; without ``rigid_props`` it is part of the fixed world."""

    func: Callable | str = "{DIR}.primitives:spawn_primitives"

    shapes: list[PrimitiveCfg] = MISSING
    """Its shapes."""

    color: tuple[float, float, float] = GREY
    """Colour of all of them."""


def box(size: tuple[float, float, float], xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0)) -> PrimitiveCfg:
    """Return a box with these edges [m]."""
    return PrimitiveCfg(type="box", size=dict(zip("xyz", size, strict=True)), xyz=xyz, rpy=rpy)


def fixed_box(
    size: tuple[float, float, float], color: tuple[float, float, float] = GREY, *, contact_offset: float = 0.002
) -> PrimitivesCfg:
    """Return a box that never moves; contacts are seen from ``contact_offset`` on [m]."""
    return PrimitivesCfg(shapes=[box(size)], color=color, collision_props=contact_offsets(contact_offset))


def free_box(
    size: tuple[float, float, float],
    density: float,
    color: tuple[float, float, float],
    *,
    angular_damping: float = OBJECT_DAMPING,
    velocity_iterations: int = 0,
    contact_offset: float = 0.002,
) -> PrimitivesCfg:
    """Return a box that falls, slides and can be held.

    Args:
        size: Edges [m].
        density: Even in the whole box [kg/m^3].
        color: Red, green and blue.
        angular_damping: Share of the spin that is lost in a second, on PhysX [1/s]. Defaults to 0.5.
        velocity_iterations: Of PhysX's solver; 8 position iterations come before. Defaults to 0.
        contact_offset: Distance at which PhysX begins to see a contact [m]. Defaults to 0.002.
    """
    return PrimitivesCfg(
        shapes=[box(size)],
        color=color,
        mass_props=MassPropertiesCfg(mass=density * size[0] * size[1] * size[2]),
        rigid_props={
            "": [
                body(
                    angular_damping=angular_damping,
                    max_depenetration_velocity=1000.0,
                    solver_position_iteration_count=8,
                    solver_velocity_iteration_count=velocity_iterations,
                )
            ]
        },
        collision_props=contact_offsets(contact_offset),
    )


def moved_body(shapes: list[PrimitiveCfg], color: tuple[float, float, float]) -> PrimitivesCfg:
    """Return a body that moves only when its pose is written, and pushes others but is not pushed."""
    return PrimitivesCfg(
        shapes=shapes,
        color=color,
        mass_props=MassPropertiesCfg(mass=1.0),
        rigid_props=RigidBodyBaseCfg(kinematic_enabled=True),
        collision_props=contact_offsets(),
    )


def contact_offsets(contact_offset: float = 0.002) -> dict[str, list]:
    """Return the distances at which PhysX begins to see a contact [m] and at which bodies come to rest (0)."""
    # the shapes only: what lies beside them would be made a shape, too
    return {"/shape_.*": [PhysxCollisionCfg(contact_offset=contact_offset, rest_offset=0.0)]}
