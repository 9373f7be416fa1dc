"""Gaussian noise on a child's gene."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

AMT = "amt"
"""Mutation whose size is tuned at every event."""


def mutation_scale(genes: torch.Tensor, mode: str, sigma: float, floor: float = 0.02) -> torch.Tensor:
    """Return the standard deviation of the noise, by dimension. Shape is (L,).

    Averaging alone contracts a population: its spread falls to a hundredth after a thousand children at K = 64. An
    absolute noise keeps a spread of about sqrt(2) sigma.

    Args:
        genes: Genes of all agents; the master, slot 0, does not count for the spread. Shape is (K, L).
        mode: ``absolute``, sigma itself; ``relative``, sigma times the followers' spread; ``variance_preserving``,
            the spread over sqrt(2); ``amt``, a sigma that is tuned (``amt.py``); ``none``.
        sigma: Absolute or relative size.
        floor: Least size of ``relative``.
    """
    return MUTATIONS[mode](genes[1:].std(dim=0), sigma, floor)


def mutate(gene: torch.Tensor, scale: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the gene with Gaussian noise; nothing is drawn if there is none to add."""
    if not scale.any():
        return gene
    return gene + scale * torch.randn(gene.shape, generator=generator)


def _absolute(spread: torch.Tensor, sigma: float, floor: float) -> torch.Tensor:
    return torch.full_like(spread, sigma)


def _relative(spread: torch.Tensor, sigma: float, floor: float) -> torch.Tensor:
    return (sigma * spread).clamp(min=floor)


def _variance_preserving(spread: torch.Tensor, sigma: float, floor: float) -> torch.Tensor:
    return spread / math.sqrt(2.0)


def _none(spread: torch.Tensor, sigma: float, floor: float) -> torch.Tensor:
    return torch.zeros_like(spread)


MUTATIONS: dict[str, Callable[[torch.Tensor, float, float], torch.Tensor]] = {
    "absolute": _absolute,
    "relative": _relative,
    "variance_preserving": _variance_preserving,
    AMT: _absolute,
    "none": _none,
}
"""Standard deviation of the noise from the followers' spread, by name."""
