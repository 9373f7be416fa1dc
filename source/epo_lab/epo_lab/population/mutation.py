"""Gaussian noise on a child's gene."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

AMT = "amt"
"""Mutation whose size is tuned at every event."""


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
            sigma; ``amt``, a sigma that is tuned (``amt.py``); ``none``.
        sigma: Absolute or relative size.
        floor: Least size of ``relative``.
        target: Spread that ``keep_spread`` holds.
        num_children: Children of the event, who share what ``keep_spread`` gives back.
    """
    return MUTATIONS[mode](genes[1:].std(dim=0), sigma, floor, target, (len(genes) - 1) / num_children)


def mutate(gene: torch.Tensor, scale: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the gene with Gaussian noise; nothing is drawn if there is none to add."""
    if not scale.any():
        return gene
    return gene + scale * torch.randn(gene.shape, generator=generator)


def _absolute(spread: torch.Tensor, sigma: float, *_: float) -> torch.Tensor:
    return torch.full_like(spread, sigma)


def _relative(spread: torch.Tensor, sigma: float, floor: float, *_: float) -> torch.Tensor:
    return (sigma * spread).clamp(min=floor)


def _variance_preserving(spread: torch.Tensor, *_: float) -> torch.Tensor:
    return spread / math.sqrt(2.0)


def _keep_spread(spread: torch.Tensor, sigma: float, _: float, target: float, followers_a_child: float) -> torch.Tensor:
    # n followers of whom c get noise of variance s^2 gain a variance of c s^2 / n, all dimensions together
    missing = max(target**2 - float(spread.square().mean()), 0.0)
    return torch.full_like(spread, max(sigma, math.sqrt(missing * followers_a_child)))


def _none(spread: torch.Tensor, *_: float) -> torch.Tensor:
    return torch.zeros_like(spread)


MUTATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "absolute": _absolute,
    "relative": _relative,
    "variance_preserving": _variance_preserving,
    "keep_spread": _keep_spread,
    AMT: _absolute,
    "none": _none,
}
"""Standard deviation of the noise from the followers' spread, by name."""
