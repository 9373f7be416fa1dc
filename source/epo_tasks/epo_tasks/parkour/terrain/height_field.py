"""Heights and edges of the whole field, for look-ups."""

from __future__ import annotations

import numpy as np
import torch


class HeightField:
    """A grid of heights that lies centred on the origin. Beyond it everything is as at its rim."""

    def __init__(self, heights: np.ndarray, horizontal: float, vertical: float, jump: float, device: str) -> None:
        """Create the field.

        Args:
            heights: Height of every grid point in vertical steps. Shape is (points along x, points along y).
            horizontal: Distance of two points [m].
            vertical: One step [m].
            jump: Least difference between neighbours that is a vertical face [m].
            device: Where look-ups happen.
        """
        self.horizontal, self.jump = horizontal, jump
        self.heights = torch.as_tensor(heights.astype(np.float32) * vertical, device=device)
        """Height of every point [m]."""
        self.edges = torch.as_tensor(edge_mask(heights, jump / vertical), device=device)
        """Whether a point is at the foot of a vertical face along x, or next to such a point."""
        extent = torch.tensor(heights.shape, dtype=torch.float, device=device) - 1.0
        self._corner = -0.5 * horizontal * extent
        self._last = extent
        self._columns = heights.shape[1]

    def surface(self, points: torch.Tensor) -> torch.Tensor:
        """Return the height of the mesh below points in the world [m]. Shape is (..., 2) to (...).

        A cell with a vertical face is as low as its lowest corner, because the mesh has the face on the far side of it.
        """
        place = (points - self._corner) / self.horizontal
        cell = torch.minimum(place.floor().clamp(min=0.0), self._last - 1.0)
        x, y = (place - cell).clamp(0.0, 1.0).unbind(dim=-1)
        index = (cell[..., 0] * self._columns + cell[..., 1]).long()
        flat = self.heights.flatten()
        corner, along_y = flat[index], flat[index + 1]
        along_x, opposite = flat[index + self._columns], flat[index + self._columns + 1]
        lower = corner + x * (along_x - corner) + y * (opposite - along_x)
        upper = corner + y * (along_y - corner) + x * (opposite - along_y)
        low = torch.minimum(torch.minimum(corner, opposite), torch.minimum(along_x, along_y))
        high = torch.maximum(torch.maximum(corner, opposite), torch.maximum(along_x, along_y))
        return torch.where(high - low > self.jump, low, torch.where(x >= y, lower, upper))

    def at_edge(self, points: torch.Tensor) -> torch.Tensor:
        """Return whether the grid points nearest to points in the world are edges. Shape is (..., 2) to (...)."""
        nearest = ((points - self._corner) / self.horizontal).round().clamp(min=0.0)
        nearest = torch.minimum(nearest, self._last).long()
        return self.edges[nearest[..., 0], nearest[..., 1]]


def edge_mask(heights: np.ndarray, jump: float) -> np.ndarray:
    """Mark points that a neighbour along x overtops by more than ``jump`` steps, and their neighbours along x."""
    rise = np.diff(heights.astype(np.int32), axis=0)
    foot = np.zeros(heights.shape, dtype=bool)
    foot[:-1] |= rise > jump
    foot[1:] |= -rise > jump
    wide = foot.copy()
    wide[:-1] |= foot[1:]
    wide[1:] |= foot[:-1]
    return wide
