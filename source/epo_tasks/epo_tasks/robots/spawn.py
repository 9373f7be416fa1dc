"""Spawn a robot from its facts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from isaaclab.sim.spawners.from_files.from_files import spawn_from_usd_file
from isaaclab.sim.utils import clone

from .usd import cached_usd

if TYPE_CHECKING:
    from pxr import Usd

    from .spawn_cfg import RobotFactsCfg


@clone
def spawn_from_facts(
    prim_path: str,
    cfg: RobotFactsCfg,
    translation: tuple[float, float, float] | None = None,
    orientation: tuple[float, float, float, float] | None = None,
    **kwargs,
) -> Usd.Prim:
    """Spawn the robot ``cfg.facts`` describes and apply the properties of the config to it."""
    module, _, attribute = str(cfg.facts).partition(":")
    facts = getattr(importlib.import_module(module), attribute)
    usd_path = cached_usd(facts, self_collision=cfg.self_collision, round_cylinders=cfg.round_cylinders)
    return spawn_from_usd_file(prim_path, usd_path, cfg, translation, orientation)
