"""Who survives and who has children."""

from __future__ import annotations

import torch

PARENT_MODES = ("elite", "top2", "fitness")
SELECTIONS = ("elite", "soft")
"""Whether those that survive an event stay as they are, or are mutated like everybody else (ESAC's soft winners)."""


def rank_followers(fitness: torch.Tensor) -> torch.Tensor:
    """Return the followers' slots, fittest first; of equals the lower slot comes first.

    Args:
        fitness: Fitness of all agents; the master is slot 0 and takes no part. Shape is (K,).
    """
    return torch.sort(fitness[1:], descending=True, stable=True).indices + 1


def draw_parents(elites: torch.Tensor, mode: str, generator: torch.Generator) -> tuple[int, int]:
    """Return two distinct elites.

    Args:
        elites: Slots of the elites, fittest first.
        mode: ``elite`` draws uniformly (EPO), ``top2`` takes the two fittest, ``fitness`` draws in proportion to the
            rank, so that the fittest of n is n times as likely as the last.
        generator: The population's generator.
    """
    if mode == "top2":
        return int(elites[0]), int(elites[1])
    weights = torch.ones(len(elites), dtype=torch.float64)
    if mode == "fitness":
        weights = torch.arange(len(elites), 0, -1, dtype=torch.float64)
    first, second = torch.multinomial(weights, 2, replacement=False, generator=generator)
    return int(elites[first]), int(elites[second])
