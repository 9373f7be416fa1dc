"""Heights and goals of one track, for each of the five types. Lengths in metres, all draws from the given generator.

A track is 18 m long (x) and 4 m wide (y). It begins with a flat platform and carries six obstacles and eight goals. A
height is a whole number of ``vertical`` steps at a grid point, as a field of triangles wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIZE = (18.0, 4.0)
"""Length (x) and width (y) of a track."""

START = (1.0, 2.0)
"""Where robots begin, in the frame of the track's corner; they look along x."""

PLATFORM = 2.5
OBSTACLES = 6
GOALS = OBSTACLES + 2
LAST_GOAL = 17.55
"""Place of a last goal that would lie beyond the track."""

_PILLAR_HEIGHTS = (1, 2, 3, 3, 2, 1)


@dataclass
class Grid:
    """Resolution of the heights, and the draws that lie on it."""

    horizontal: float
    """Distance of two points."""
    vertical: float
    """One step of height."""
    rng: np.random.Generator
    """Where all draws come from."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points of a track along x and y."""
        return self.cells(SIZE[0]), self.cells(SIZE[1])

    @property
    def middle(self) -> int:
        """Index of the middle line."""
        return self.shape[1] // 2

    def cells(self, length: float) -> int:
        """Return a length as a whole number of cells."""
        return round(length / self.horizontal)

    def even(self, length: float, least: int) -> int:
        """Return a length as an even number of cells, cut off, or ``least`` if that is more."""
        return max(self.cells(length) // 2 * 2, least)

    def steps(self, height: float) -> int:
        """Return a height as a whole number of steps."""
        return round(height / self.vertical)

    def draw_cells(self, low: float, high: float) -> int:
        """Draw a length in cells; ``high`` is never reached."""
        return self._draw(self.cells(low), self.cells(high))

    def draw_steps(self, low: float, high: float) -> int:
        """Draw a height in steps; ``high`` is never reached."""
        return self._draw(self.steps(low), self.steps(high))

    def _draw(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, max(high, low + 1)))

    def strip(self, middle: int, half: int) -> slice:
        """Return the points of a strip along y."""
        return slice(max(middle - half, 0), max(middle + half, 0))

    def around(self, centre: int, cells: int) -> slice:
        """Return ``cells`` points along x around a centre."""
        begin = max(centre - cells // 2, 0)
        return slice(begin, max(centre - cells // 2 + cells, 0))


Track = tuple[np.ndarray, np.ndarray]
"""Heights in steps, int16, at the grid's points, and goals (x, y) in the frame of the corner, shape (8, 2)."""


def hurdles(grid: Grid, difficulty: float, *, flat: bool = False) -> Track:
    """Bars on flat ground that can be jumped over or walked around; ``flat`` leaves the bars out."""
    heights = np.zeros(grid.shape, dtype=np.int16)
    pitch = (1.5, 2.4) if flat else (1.2, 2.2)
    half = grid.cells(grid.rng.uniform(0.4, 0.8))
    # the mesh is a cell thinner than the points are: two points are the least that is no blade
    thickness = grid.even(0.1 + 0.3 * difficulty, least=2)
    x, goals = grid.cells(PLATFORM), [(PLATFORM - 0.05, SIZE[1] / 2)]
    for _ in range(OBSTACLES):
        dx, dy = grid.draw_cells(*pitch), grid.draw_cells(-0.4, 0.4)
        x += dx
        if not flat:
            height = grid.draw_steps(0.1 + 0.1 * difficulty, 0.15 + 0.25 * difficulty)
            heights[grid.around(x, thickness), grid.strip(grid.middle + dy, half)] = height
        goals.append(((x - dx / 2) * grid.horizontal, (grid.middle + dy) * grid.horizontal))
    goals.append(_last_goal(grid, x + grid.draw_cells(*pitch)))
    return heights, np.array(goals)


def flat(grid: Grid, difficulty: float) -> Track:
    """Nothing but goals that zigzag."""
    return hurdles(grid, difficulty, flat=True)


def steps(grid: Grid, difficulty: float) -> Track:
    """Stairs of three steps up and three down."""
    heights = np.zeros(grid.shape, dtype=np.int16)
    step = 0.1 + 0.35 * difficulty
    half = grid.cells(grid.rng.uniform(0.5, 1.0))
    x, goals = grid.cells(PLATFORM), [(1.5, SIZE[1] / 2)]
    for level in _PILLAR_HEIGHTS:
        dx, dy = grid.draw_cells(0.3 + step, 1.5 + step), grid.draw_cells(-0.4, 0.4)
        heights[x : x + dx, grid.strip(grid.middle + dy, half)] = level * grid.steps(step)
        goals.append(((x + dx / 2) * grid.horizontal, (grid.middle + dy) * grid.horizontal))
        x += dx
    goals.append(_last_goal(grid, x + grid.draw_cells(0.3 + step, 1.5 + step)))
    return heights, np.array(goals)


def gaps(grid: Grid, difficulty: float) -> Track:
    """Platforms with trenches between and beside them."""
    heights = np.zeros(grid.shape, dtype=np.int16)
    width = grid.cells(0.1 + 0.7 * difficulty) * grid.horizontal
    depth = -grid.steps(grid.rng.uniform(0.2, 1.0))
    half = grid.cells(grid.rng.uniform(0.6, 1.2))
    trench = grid.even(width, least=1)
    x, goals = grid.cells(PLATFORM), [(PLATFORM - 0.05, SIZE[1] / 2)]
    platform_begin = x
    for _ in range(OBSTACLES):
        dx, dy = grid.draw_cells(0.8 + width, 1.5 + width), grid.draw_cells(-0.4, 0.4)
        x += dx
        gap, strip = grid.around(x, trench), grid.strip(grid.middle + dy, half)
        heights[platform_begin : gap.start, : strip.start] = depth
        heights[platform_begin : gap.start, strip.stop :] = depth
        heights[gap] = depth
        platform_begin = gap.stop
        goals.append(((x - dx / 2) * grid.horizontal, (grid.middle + dy) * grid.horizontal))
    goals.append(_last_goal(grid, x + grid.draw_cells(0.8 + width, 1.5 + width)))
    return heights, np.array(goals)


def stones(grid: Grid, difficulty: float) -> Track:
    """Banked stones over a pit, left and right in turn."""
    heights = np.full(grid.shape, -grid.steps(grid.rng.uniform(0.2, 1.0)), dtype=np.int16)
    platform = grid.cells(PLATFORM)
    heights[:platform] = 0
    length = 0.2 * round(grid.rng.uniform(0.9 - 0.3 * difficulty, 1.0 - 0.2 * difficulty) / 0.2)
    spacing = (length - 0.1, length + 0.1 + 0.3 * difficulty)
    x = platform - grid.draw_cells(*spacing) + grid.cells(length) // 2
    goals = [(PLATFORM - length / 2, SIZE[1] / 2)]
    side = int(grid.rng.choice((-1, 1)))
    bank = 0.25 * difficulty
    for index in range(OBSTACLES):
        last = index == OBSTACLES - 1
        x += grid.draw_cells(*spacing) + (grid.cells(0.4) if last else 0)
        y = grid.middle + side * grid.draw_cells(0.2, 0.3 + 0.1 * difficulty)
        rows = grid.around(x, grid.cells(1.6 if last else length))
        columns = grid.strip(y, grid.cells(1.0) // 2)
        edge = side * grid.steps(bank + 0.1 - 0.1 * difficulty if last else bank)
        heights[rows, columns] = np.linspace(-edge, edge, columns.stop - columns.start).astype(np.int16)
        goals.append((x * grid.horizontal, y * grid.horizontal))
        side = -side
    heights[x + grid.cells(1.6) // 2 + max(grid.cells(0.05), 1) :] = 0
    goals.append(((x + 2 * grid.draw_cells(*spacing)) * grid.horizontal, SIZE[1] / 2))
    return heights, np.array(goals)


def _last_goal(grid: Grid, x: int) -> tuple[float, float]:
    place = x * grid.horizontal
    return (LAST_GOAL if place > SIZE[0] else place), SIZE[1] / 2


TRACKS: dict[str, Callable[[Grid, float], Track]] = {
    "stones": stones,
    "hurdles": hurdles,
    "flat": flat,
    "steps": steps,
    "gaps": gaps,
}
"""All types, in the order of the field's columns."""


def build_track(kind: str, grid: Grid, difficulty: float) -> Track:
    """Return a whole track: obstacles, the frame of 0.1 m at height 0 around them, and roughness on top."""
    heights, goals = TRACKS[kind](grid, difficulty)
    frame = grid.cells(0.1)
    heights[:frame] = heights[-frame:] = 0
    heights[:, :frame] = heights[:, -frame:] = 0
    return heights + roughness(grid), goals


def roughness(grid: Grid, spacing: float = 0.075) -> np.ndarray:
    """Return random heights in steps, drawn on a grid of its own and interpolated bilinearly."""
    amplitude = grid.steps(grid.rng.uniform(0.02, 0.06))
    coarse_shape = [int(np.ceil(length / spacing)) + 1 for length in SIZE]
    coarse = grid.rng.integers(-amplitude, amplitude + 1, coarse_shape).astype(np.float64)
    for axis, count in enumerate(grid.shape):
        place = np.arange(count) * grid.horizontal / spacing
        index = np.minimum(place.astype(int), coarse.shape[axis] - 2)
        shape = (-1, 1) if axis == 0 else (1, -1)
        share = (place - index).reshape(shape)
        coarse = (1.0 - share) * coarse.take(index, axis) + share * coarse.take(index + 1, axis)
    return np.rint(coarse).astype(np.int16)
