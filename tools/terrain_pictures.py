"""Pictures of the field, ray-traced on its mesh: from above, and every track type in perspective."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from isaaclab.utils.warp import convert_to_warp_mesh, raycast_mesh
from PIL import Image

from epo_tasks.parkour.terrain.generator import ParkourTerrainGenerator
from epo_tasks.parkour.terrain.terrain_cfg import ParkourTerrainGeneratorCfg
from epo_tasks.parkour.terrain.tracks import TRACKS

LEVELS = (0, 5, 9)
"""Levels that are drawn in perspective."""

GOAL_RADIUS = 0.15
GOAL_COLOR = (60, 110, 230)
_SUN = torch.nn.functional.normalize(torch.tensor([-0.5, -0.6, 0.75]), dim=0)
_HEIGHTS = torch.tensor([-1.0, -0.3, -0.06, 0.06, 0.3, 1.4])
_COLORS = torch.tensor(
    [[40, 50, 70], [80, 95, 120], [170, 165, 155], [190, 185, 170], [215, 180, 120], [205, 120, 70]], dtype=torch.float
)


def draw_field(folder: Path, cfg: ParkourTerrainGeneratorCfg) -> list[Path]:
    """Write ``field.png`` (the whole field) and ``<type>.png`` (three levels of it) and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    field = ParkourTerrainGenerator(cfg)
    pictures = {"field": _from_above(field)}
    field = ParkourTerrainGenerator(cfg.replace(num_cols=len(TRACKS)))
    mesh = convert_to_warp_mesh(field.terrain_mesh.vertices, field.terrain_mesh.faces, device="cpu")
    goals = field.flat_patches["goals"]
    for column, kind in enumerate(field.column_types):
        views = [_perspective(mesh, goals[level, column], field.terrain_origins[level, column]) for level in LEVELS]
        pictures[kind] = np.concatenate(views, axis=0)
    paths = [folder / f"{name}.png" for name in pictures]
    for path, picture in zip(paths, pictures.values(), strict=True):
        Image.fromarray(picture).quantize(64).save(path, optimize=True)
    return paths


def _from_above(field: ParkourTerrainGenerator, pixel: int = 3) -> np.ndarray:
    """Return the field, levels rising to the right; a pixel is the mean of three by three points."""
    heights = torch.nn.functional.avg_pool2d(field.height_field.heights[None, None], pixel)[0, 0].T.flip(0)
    color = _color_of_height(heights.contiguous())
    places = field.flat_patches["goals"][..., :2].reshape(-1, 2)
    size = pixel * field.cfg.horizontal_scale
    index = (places / size + 0.5 * torch.tensor(heights.shape[::-1])).long()
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        color[heights.shape[0] - 1 - index[:, 1] - dy, index[:, 0] + dx] = torch.tensor(GOAL_COLOR, dtype=torch.float)
    return color.byte().numpy()


def _perspective(mesh, goals: torch.Tensor, origin: np.ndarray) -> np.ndarray:
    """Return a track, seen from behind and above its start."""
    width, height, half_angle = 960, 250, 0.66
    eye = torch.tensor(origin, dtype=torch.float) + torch.tensor([3.0, -8.2, 6.0])
    target = torch.tensor(origin, dtype=torch.float) + torch.tensor([6.0, 0.0, -0.2])
    forward = torch.nn.functional.normalize(target - eye, dim=0)
    right = torch.nn.functional.normalize(torch.linalg.cross(forward, torch.tensor([0.0, 0.0, 1.0])), dim=0)
    up = torch.linalg.cross(right, forward)
    across = torch.linspace(-1.0, 1.0, width) * np.tan(half_angle)
    along = torch.linspace(1.0, -1.0, height) * np.tan(half_angle) * height / width
    rays = forward + across[None, :, None] * right + along[:, None, None] * up
    rays = torch.nn.functional.normalize(rays, dim=-1)
    return _trace(mesh, eye.expand_as(rays), rays, goals)


def _trace(mesh, starts: torch.Tensor, rays: torch.Tensor, goals: torch.Tensor) -> np.ndarray:
    """Return the colours that rays meet, goals as blue discs. Shape is (height, width, 3), uint8."""
    hits, _, normals, _ = raycast_mesh(starts.reshape(-1, 3), rays.reshape(-1, 3), mesh, return_normal=True)
    hits, normals = hits.reshape(rays.shape), normals.reshape(rays.shape)
    met = hits.isfinite().all(dim=-1)
    hits = torch.where(met.unsqueeze(-1), hits, 0.0)
    light = 0.35 + 0.75 * (normals * _SUN).sum(dim=-1).clamp(min=0.0)
    color = _color_of_height(hits[..., 2]) * light.unsqueeze(-1)
    near = torch.zeros_like(met)
    for goal in goals:
        near |= (hits[..., :2] - goal[:2]).norm(dim=-1) < GOAL_RADIUS
    color[near] = torch.tensor(GOAL_COLOR, dtype=torch.float)
    color[~met] = 235.0
    return color.clamp(0.0, 255.0).byte().numpy()


def _color_of_height(height: torch.Tensor) -> torch.Tensor:
    index = torch.bucketize(height.contiguous(), _HEIGHTS).clamp(1, len(_HEIGHTS) - 1)
    low, high = _HEIGHTS[index - 1], _HEIGHTS[index]
    share = ((height - low) / (high - low)).clamp(0.0, 1.0).unsqueeze(-1)
    return (1.0 - share) * _COLORS[index - 1] + share * _COLORS[index]
