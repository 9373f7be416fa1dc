"""Isaac Lab's terrain generator, for a field of tracks."""

from __future__ import annotations

import numpy as np
import torch
import trimesh
from isaaclab.terrains import TerrainGenerator
from isaaclab.terrains.height_field.utils import convert_height_field_to_mesh

from .height_field import HeightField
from .tracks import GOALS, SIZE, START, Grid, build_track


class ParkourTerrainGenerator(TerrainGenerator):
    """Builds the whole field as one grid of heights, so that neighbouring tracks share their points.

    Rows are levels: row r of R has difficulty r / (R - 1). The goals are ``flat_patches["goals"]``, shape is (rows,
    columns, 8, 3); the mesh carries the :class:`HeightField` as ``metadata["height_field"]`` and the name of every
    column's track type as ``metadata["column_types"]``.
    """

    def __init__(self, cfg, device: str = "cpu") -> None:
        """Build the field; see Isaac Lab's."""
        super().__init__(cfg, device)
        jump = cfg.slope_threshold * cfg.horizontal_scale
        self.height_field = HeightField(self._heights, cfg.horizontal_scale, cfg.vertical_scale, jump, device)
        self.terrain_mesh.metadata.update(height_field=self.height_field, column_types=self.column_types)

    def _generate_curriculum_terrains(self) -> None:
        cfg = self.cfg
        seed = int(self.np_rng.integers(2**32))
        self.column_types = column_types(list(cfg.sub_terrains), cfg.num_cols)
        goals = np.zeros((cfg.num_rows, cfg.num_cols, GOALS, 3), dtype=np.float32)
        length, width = Grid(cfg.horizontal_scale, cfg.vertical_scale, self.np_rng).shape
        heights = np.zeros((cfg.num_rows * length + 1, cfg.num_cols * width + 1), dtype=np.int16)
        for row in range(cfg.num_rows):
            for column, kind in enumerate(self.column_types):
                # a generator for each track: it is the same in a field of any size
                grid = Grid(cfg.horizontal_scale, cfg.vertical_scale, np.random.default_rng((seed, column, row)))
                tile, points = build_track(kind, grid, row / max(cfg.num_rows - 1, 1))
                heights[row * length : (row + 1) * length, column * width : (column + 1) * width] = tile
                cells = np.minimum((points / cfg.horizontal_scale).astype(int), np.array(tile.shape) - 1)
                goals[row, column, :, :2] = points - START
                goals[row, column, :, 2] = tile[cells[:, 0], cells[:, 1]] * cfg.vertical_scale
                self.terrain_origins[row, column] = row * SIZE[0] + START[0], column * SIZE[1] + START[1], 0.0
        # the rim joins the border, which is at height 0
        heights[[0, -1]] = 0
        heights[:, [0, -1]] = 0
        self._heights = heights
        vertices, faces = convert_height_field_to_mesh(
            heights, cfg.horizontal_scale, cfg.vertical_scale, cfg.slope_threshold
        )
        # trimesh would merge points of vertical faces, in minutes
        self.terrain_meshes.append(trimesh.Trimesh(vertices, faces, process=False))
        self.flat_patches["goals"] = torch.as_tensor(goals, device=self.device)


def column_types(kinds: list[str], num_cols: int) -> list[str]:
    """Return the type of every column: equal blocks, in order."""
    ends = np.cumsum(np.full(len(kinds), 1.0 / len(kinds)))
    return [kinds[int(np.argmax(column / num_cols + 0.001 < ends))] for column in range(num_cols)]
