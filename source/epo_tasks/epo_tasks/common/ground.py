"""Author a ground plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from isaaclab.sim.utils import bind_physics_material, get_current_stage
from pxr import Gf, UsdGeom, UsdPhysics

from epo_tasks.robots.usd import write_friction_gain

if TYPE_CHECKING:
    from pxr import Usd

    from .ground_cfg import GroundCfg


def spawn_ground(prim_path: str, cfg: GroundCfg, translation=None, orientation=None, **kwargs) -> Usd.Prim:
    """Author an infinite collision plane at z = 0 and a checkered square to look at."""
    stage = get_current_stage()
    ground = UsdGeom.Xform.Define(stage, prim_path)
    plane = UsdGeom.Plane.Define(stage, f"{prim_path}/plane")
    plane.CreateAxisAttr(UsdGeom.Tokens.z)
    plane.CreatePurposeAttr(UsdGeom.Tokens.guide)
    UsdPhysics.CollisionAPI.Apply(plane.GetPrim())
    material_path = f"{prim_path}/material"
    material = cfg.physics_material.func(material_path, cfg.physics_material)
    write_friction_gain(material)
    bind_physics_material(str(plane.GetPath()), material_path, stage=stage)

    for name, color, parity in (("light", cfg.colors[0], 0), ("dark", cfg.colors[1], 1)):
        points, faces = checker_quads(cfg.checker_extent, cfg.checker_size, parity)
        mesh = UsdGeom.Mesh.Define(stage, f"{prim_path}/{name}")
        mesh.CreatePointsAttr(points)
        mesh.CreateFaceVertexIndicesAttr(faces.reshape(-1))
        mesh.CreateFaceVertexCountsAttr(np.full(len(faces), 4, dtype=np.int32))
        mesh.CreateDisplayColorAttr([Gf.Vec3f(*color)])
    return ground.GetPrim()


def checker_quads(extent: float, size: float, parity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and quads of the squares of one colour of a checkerboard centred on the origin."""
    count = round(extent / size)
    index = np.array([(i, j) for i in range(count) for j in range(count) if (i + j) % 2 == parity])
    corners = index[:, None, :] + np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    # a hair below the plane, so that shadows and feet are drawn on top
    points = np.concatenate([corners * size - extent / 2.0, np.full((*corners.shape[:2], 1), -1e-3)], axis=-1)
    faces = np.arange(4 * len(index), dtype=np.int32).reshape(-1, 4)
    return points.reshape(-1, 3).astype(np.float32), faces
