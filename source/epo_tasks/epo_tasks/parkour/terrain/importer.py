"""Isaac Lab's terrain importer, with robots spread evenly over the track types."""

from __future__ import annotations

import torch
import trimesh
from isaaclab.terrains import TerrainImporter

from .height_field import HeightField


class ParkourTerrainImporter(TerrainImporter):
    """Gives environment i column i modulo their number, so that any block of environments meets all types.

    Isaac Lab's own gives every column a block of environments. Agents of a population that own blocks too would each
    train on their own type, and be ranked by it.
    """

    height_field: HeightField
    """Heights and edges of the field."""

    column_types: list[str]
    """Track type of every column."""

    def import_mesh(self, name: str, mesh: trimesh.Trimesh) -> None:
        """Import the mesh and keep what the generator knows about it."""
        self.height_field, self.column_types = mesh.metadata["height_field"], mesh.metadata["column_types"]
        super().import_mesh(name, mesh)

    def _compute_env_origins_curriculum(self, num_envs: int, origins: torch.Tensor) -> torch.Tensor:
        super()._compute_env_origins_curriculum(num_envs, origins)
        self.terrain_types = torch.arange(num_envs, device=self.device) % origins.shape[1]
        return origins[self.terrain_levels, self.terrain_types]

    def set_levels(self, levels: torch.Tensor) -> None:
        """Put every robot on a level; it begins there with its next episode."""
        assert self.terrain_origins is not None
        self.terrain_levels[:] = levels.to(self.terrain_levels)
        self.env_origins[:] = self.terrain_origins[self.terrain_levels, self.terrain_types]
