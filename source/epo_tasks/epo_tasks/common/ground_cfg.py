"""Config of a ground plane that needs no download: Isaac Lab's own lies on a content server."""

from collections.abc import Callable

import isaaclab.sim as sim_utils
from isaaclab.sim.spawners.spawner_cfg import SpawnerCfg
from isaaclab.utils import configclass
from isaaclab_physx.sim.spawners.materials import PhysxRigidBodyMaterialCfg

FIRM_SURFACE = PhysxRigidBodyMaterialCfg(
    static_friction=1.0, dynamic_friction=1.0, restitution=0.0, friction_combine_mode="average"
)
"""Ground of the walking robots: friction 1, averaged with the robot's as in the references, no restitution."""

MULTIPLIED_SURFACE = PhysxRigidBodyMaterialCfg(
    static_friction=1.0,
    dynamic_friction=1.0,
    restitution=0.0,
    friction_combine_mode="multiply",
    restitution_combine_mode="multiply",
)
"""Ground of Isaac Lab's velocity tasks: friction 1, multiplied with the robot's."""

NO_FRICTION = PhysxRigidBodyMaterialCfg(static_friction=0.0, dynamic_friction=0.0, restitution=0.0)
"""Ground that leaves friction to the robot, on an engine that takes the larger of the two."""


@configclass
class GroundCfg(SpawnerCfg):
    """Spawns an infinite ground plane."""

    func: Callable | str = "{DIR}.ground:spawn_ground"

    physics_material: sim_utils.RigidBodyMaterialCfg = sim_utils.RigidBodyMaterialCfg(
        static_friction=1.0, dynamic_friction=1.0, restitution=0.0
    )
    """Surface of the ground. Default friction 1.0, restitution 0."""

    checker_extent: float = 60.0
    """Edge of the checkered square [m]. Default 60."""

    checker_size: float = 1.0
    """Edge of one tile of it [m]. Default 1."""

    colors: tuple[tuple[float, float, float], ...] = ((0.82, 0.84, 0.86), (0.62, 0.66, 0.70))
    """Light and dark tiles."""
