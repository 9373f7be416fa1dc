"""The child of two genes."""

from __future__ import annotations

import torch

CROSSOVERS = ("average", "uniform", "fitness_weighted")


def crossover(
    genes: torch.Tensor, fitness: torch.Tensor, parents: tuple[int, int], mode: str, generator: torch.Generator
) -> torch.Tensor:
    """Return the gene of a child before mutation. Shape is (L,).

    Args:
        genes: Genes of all agents. Shape is (K, L).
        fitness: Fitness of all agents.
        parents: Slots of the two parents.
        mode: ``average``; ``uniform``, each element from either parent; ``fitness_weighted``, the fitter counts more.
        generator: The population's generator.
    """
    first, second = genes[parents[0]], genes[parents[1]]
    if mode == "average":
        return 0.5 * (first + second)
    if mode == "uniform":
        return torch.where(torch.rand(first.shape, generator=generator) < 0.5, first, second)
    above = fitness[list(parents)] - fitness[1:].min() + 1e-8
    weight = float(above[0] / above.sum())
    return weight * first + (1.0 - weight) * second
