"""The cuboids to be handled: three families of boxes around a 5 cm cube, in a fixed shuffled order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

EDGE = 0.05
"""Edge of the unit cube [m]; a cuboid's edges are this times its scales."""

DENSITY = 400.0
"""Density of all cuboids [kg/m^3]."""

SHUFFLE_SEED = 42

Triple = tuple[int, int, int]


def is_plate(scales: Triple) -> bool:
    """Tell whether one edge is at most a third of both others."""
    low, middle, _ = sorted(scales)
    return 3 * low <= middle


def is_stubby(scales: Triple) -> bool:
    """Tell whether the longest edge is not over three times both others."""
    low, middle, high = sorted(scales)
    return high <= 3 * low or high <= 3 * middle


@dataclass(frozen=True)
class Family:
    """Cuboids whose edges come from a list of percentages."""

    percentages: tuple[int, ...]
    volumes: tuple[float, float]
    """Least and largest volume, in unit cubes."""
    rejects: tuple[Callable[[Triple], bool], ...] = ()

    def triples(self) -> list[Triple]:
        """Return the kept percentages of all cuboids; the last axis runs fastest."""
        least, largest = (round(1_000_000 * volume) for volume in self.volumes)
        return [
            (x, y, z)
            for x, y, z in itertools.product(self.percentages, repeat=3)
            if least <= x * y * z <= largest and not any(bad((x, y, z)) for bad in self.rejects)
        ]


FAMILIES = {
    "small": Family((100, 50, 66, 75, 90, 110, 125, 150, 175, 200, 250, 300), (1.0, 2.5)),
    "big": Family((100, 125, 150, 200, 250, 300, 350), (2.5, 15.0), (is_plate,)),
    "sticks": Family((100, 50, 75, 200, 300, 400, 500, 600), (2.5, 6.0), (is_plate, is_stubby)),
}


def cuboid_scales(families: Sequence[str] = tuple(FAMILIES), limit: int | None = None) -> np.ndarray:
    """Return the scales of all cuboids in their order; environment i holds cuboid i modulo their number.

    Args:
        families: Names of the families.
        limit: Keep only the first so many. Defaults to None: all.
    """
    labels = {
        f"{number:03d}_cube_{x}_{y}_{z}": (x, y, z)
        for name in families
        for number, (x, y, z) in enumerate(FAMILIES[name].triples())
    }
    order = np.array(sorted(labels))
    np.random.default_rng(SHUFFLE_SEED).shuffle(order)
    return np.array([labels[label] for label in order[:limit]]) / 100.0
