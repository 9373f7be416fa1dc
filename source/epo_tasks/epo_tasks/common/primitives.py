"""Author a body made of primitive shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isaaclab.sim import schemas
from isaaclab.sim.spawners.utils import apply_schema_props
from isaaclab.sim.utils import clone, create_prim, get_current_stage

from epo_tasks.robots.facts import Shape
from epo_tasks.robots.usd import write_shape, write_surface

if TYPE_CHECKING:
    from pxr import Usd

    from .primitives_cfg import PrimitivesCfg


@clone
def spawn_primitives(prim_path: str, cfg: PrimitivesCfg, translation=None, orientation=None, **kwargs) -> Usd.Prim:
    """Author the shapes below one prim and apply the properties of the config."""
    stage = get_current_stage()
    prim = create_prim(prim_path, prim_type="Xform", translation=translation, orientation=orientation, stage=stage)
    surface = write_surface(stage, f"{prim_path}/surface")
    for index, part in enumerate(cfg.shapes):
        shape = Shape(part.type, dict(part.size), tuple(part.xyz), tuple(part.rpy))
        write_shape(stage, f"{prim_path}/shape_{index}", shape, cfg.color, surface)
    for value, apply, define in (
        (cfg.collision_props, schemas.apply_collision_properties, schemas.define_collision_properties),
        (cfg.mass_props, schemas.apply_mass_properties, schemas.define_mass_properties),
        (cfg.rigid_props, schemas.apply_rigid_body_properties, schemas.define_rigid_body_properties),
    ):
        if value is not None:
            apply_schema_props(value, prim_path, apply, define, stage)
    return prim
