"""Config of a robot that is spawned from its facts; its USD file is written when a scene needs it, not on import."""

from collections.abc import Callable
from dataclasses import MISSING
from typing import Any

from isaaclab.sim.spawners.from_files.from_files_cfg import FileCfg
from isaaclab.utils import configclass
from isaaclab_physx.sim.schemas import PhysxArticulationCfg

from .facts import RobotFacts


def rooted(facts: RobotFacts, **physx: Any) -> dict[str, list]:
    """Return articulation properties for the prim that is the articulation's root; ``physx`` are PhysX's fields."""
    where = "" if facts.extras["fixed_base"] else f"/{facts.root}"
    return {where: [PhysxArticulationCfg(**physx)]}


@configclass
class RobotFactsCfg(FileCfg):
    """Spawns a robot from its facts."""

    func: Callable | str = "{DIR}.spawn:spawn_from_facts"

    facts: str = MISSING
    """Where the robot's :class:`~epo_tasks.robots.facts.RobotFacts` are, as ``"module:NAME"``."""

    self_collision: bool = False
    """Whether links that are not neighbours collide with each other. Default False."""

    round_cylinders: bool = False
    """Whether collision cylinders become capsules of the same overall length. Default False."""
