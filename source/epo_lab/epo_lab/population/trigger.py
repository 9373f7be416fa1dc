"""When a generation is due: Eq. 3 of the EPO paper, with guards where its denominator degenerates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch


@dataclass(frozen=True)
class Trigger:
    """Whether the population has spread far enough to replace its worst, and the numbers behind it."""

    fires: bool
    spread: float
    """Best minus worst fitness of the followers."""
    median: float
    threshold: float
    """What the spread had to exceed."""


def eq3_trigger(fitness: torch.Tensor, gamma: float, floor: float, *, error: float | None = None) -> Trigger:
    """Return whether max f - min f > gamma * max(|median f|, floor)  (EPO eq. 3, guarded).

    The literal equation is always true for a negative median and for a median of zero.

    Args:
        fitness: Fitness of the followers.
        gamma: Relative spread that fires.
        floor: Smallest scale that the spread is compared with.
        error: Mean standard error of the fitness; if given, the spread must also exceed what noise alone
            stays below 19 times out of 20.
    """
    ordered = fitness.sort().values
    middle = len(ordered) // 2
    median = float(ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle]))
    spread = float(ordered[-1] - ordered[0])
    threshold = gamma * max(abs(median), floor)
    if error is not None:
        threshold = max(threshold, largest_range_of_noise(len(ordered)) * error)
    # comparisons with NaN are false, so an agent without fitness never fires
    return Trigger(spread > threshold and spread > 0.0, spread, median, threshold)


@cache
def largest_range_of_noise(count: int, certainty: float = 0.95) -> float:
    """Return what the range of ``count`` standard normal numbers stays below with this probability."""
    x = torch.linspace(-9.0, 9.0, 4001, dtype=torch.float64)
    density, below = torch.exp(-0.5 * x.square()) / math.sqrt(2.0 * math.pi), torch.special.ndtr(x)

    def probability(width: float) -> float:
        # the lowest number is at x, all others within the width above it
        return float(torch.trapezoid(count * density * (torch.special.ndtr(x + width) - below) ** (count - 1), x))

    low, high = 0.0, 18.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if probability(middle) < certainty else (low, middle)
    return high
