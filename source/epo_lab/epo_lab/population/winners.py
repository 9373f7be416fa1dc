"""ESAC's soft winners and their crossover, for rows of parameters."""

from __future__ import annotations

import torch


def soft_winners(fitness: torch.Tensor, share: float) -> torch.Tensor:
    """Return the slots of the best w = n e members, best first; of equals the lower slot comes first.

    They are called soft because nothing shields them: what follows from them is mutated like everybody else.

    Args:
        fitness: Fitness of all members. Shape is (n,).
        share: Share e of the members that win.
    """
    number = min(max(round(share * len(fitness)), 1), len(fitness))
    return torch.sort(fitness, descending=True, stable=True).indices[:number]


def mix(first: torch.Tensor, second: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return rows in which every element is that of either of the two, with probability 1/2."""
    return torch.where(torch.rand(first.shape, generator=generator) < 0.5, first, second)
