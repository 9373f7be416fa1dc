"""Gaussian noise on a child's gene."""

from __future__ import annotations

import math

import torch

MUTATIONS = ("absolute", "relative", "variance_preserving", "none")


def mutation_scale(genes: torch.Tensor, mode: str, sigma: float, floor: float = 0.02) -> torch.Tensor:
    """Return the standard deviation of the noise, by dimension. Shape is (L,).

    Averaging alone contracts a population: its spread falls to a hundredth after a thousand children at K = 64. An
    absolute noise keeps a spread of about sqrt(2) sigma.

    Args:
        genes: Genes of all agents; the master, slot 0, does not count for the spread. Shape is (K, L).
        mode: ``absolute``, sigma itself; ``relative``, sigma times the followers' spread; ``variance_preserving``,
            the spread over sqrt(2); ``none``.
        sigma: Absolute or relative size.
        floor: Least size of ``relative``.
    """
    spread = genes[1:].std(dim=0)
    if mode == "absolute":
        return torch.full_like(spread, sigma)
    if mode == "relative":
        return (sigma * spread).clamp(min=floor)
    if mode == "variance_preserving":
        return spread / math.sqrt(2.0)
    return torch.zeros_like(spread)


def mutate(gene: torch.Tensor, scale: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the gene with Gaussian noise; nothing is drawn if there is none to add."""
    if not scale.any():
        return gene
    return gene + scale * torch.randn(gene.shape, generator=generator)
