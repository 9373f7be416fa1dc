"""Gaussian noise on a child's gene."""

from __future__ import annotations

import math

import torch

MUTATIONS = ("absolute", "relative", "variance_preserving", "keep_spread", "none")


def mutation_scale(
    genes: torch.Tensor,
    mode: str,
    sigma: float,
    floor: float = 0.02,
    *,
    target: float = 1.0,
    num_children: int = 1,
) -> torch.Tensor:
    """Return the standard deviation of the noise, by dimension. Shape is (L,).

    Selection and averaging contract a population whatever the fitness: with one child an event an absolute noise keeps
    a spread of about sqrt(2) sigma, with several it falls to about sigma. ``keep_spread`` gives back what was lost.

    Args:
        genes: Genes of all agents; the master, slot 0, does not count for the spread. Shape is (K, L).
        mode: ``absolute``, sigma itself; ``relative``, sigma times the followers' spread; ``variance_preserving``,
            the spread over sqrt(2); ``keep_spread``, as much as brings the followers back to ``target``, at least
            sigma; ``none``.
        sigma: Absolute or relative size.
        floor: Least size of ``relative``.
        target: Spread that ``keep_spread`` holds.
        num_children: Children of the event, who share what ``keep_spread`` gives back.
    """
    spread = genes[1:].std(dim=0)
    if mode == "absolute":
        return torch.full_like(spread, sigma)
    if mode == "relative":
        return (sigma * spread).clamp(min=floor)
    if mode == "variance_preserving":
        return spread / math.sqrt(2.0)
    if mode == "keep_spread":
        # n followers of whom c get noise of variance s^2 gain a variance of c s^2 / n, all dimensions together
        missing = target**2 - float(spread.square().mean())
        variance = max(missing, 0.0) * (len(genes) - 1) / num_children
        return torch.full_like(spread, max(sigma, math.sqrt(variance)))
    return torch.zeros_like(spread)


def mutate(gene: torch.Tensor, scale: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the gene with Gaussian noise; nothing is drawn if there is none to add."""
    if not scale.any():
        return gene
    return gene + scale * torch.randn(gene.shape, generator=generator)
