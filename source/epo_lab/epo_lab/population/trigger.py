"""When a generation is due: Eq. 3 of the EPO paper, with guards where its denominator degenerates."""

from __future__ import annotations

from dataclasses import dataclass

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


def eq3_trigger(
    fitness: torch.Tensor, gamma: float, floor: float, *, error: float | None = None, guard: float = 1.5
) -> Trigger:
    """Return whether max f - min f > gamma * max(|median f|, floor)  (EPO eq. 3, guarded).

    The literal equation is always true for a negative median and for a median of zero.

    Args:
        fitness: Fitness of the followers.
        gamma: Relative spread that fires.
        floor: Smallest scale that the spread is compared with.
        error: Mean standard error of the fitness; if given, the spread must also exceed what noise alone gives.
        guard: Factor on the expected range of that noise.
    """
    ordered = fitness.sort().values
    middle = len(ordered) // 2
    median = float(ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle]))
    spread = float(ordered[-1] - ordered[0])
    threshold = gamma * max(abs(median), floor)
    if error is not None:
        threshold = max(threshold, guard * expected_range(len(ordered)) * error)
    # comparisons with NaN are false, so an agent without fitness never fires
    return Trigger(spread > threshold and spread > 0.0, spread, median, threshold)


def expected_range(count: int) -> float:
    """Return the expected range of ``count`` standard normal numbers."""
    x = torch.linspace(-8.0, 8.0, 4001, dtype=torch.float64)
    below = torch.special.ndtr(x)
    return float(torch.trapezoid(1.0 - below**count - (1.0 - below) ** count, x))
