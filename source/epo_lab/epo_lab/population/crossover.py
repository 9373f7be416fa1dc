"""The child of two genes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

import torch

from epo_lab.base.errors import UserError

CROSSOVERS = ("average", "uniform", "fitness_weighted")


@cache
def own_crossover(path: str) -> Callable[..., torch.Tensor]:
    """Return the function that ``module:function`` names; it takes genes, fitness, parents and generator."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"crossover '{path}' cannot be loaded ({error}): PYTHONPATH must lead to {module}.py") from None


def crossover(
    genes: torch.Tensor, fitness: torch.Tensor, parents: tuple[int, int], mode: str, generator: torch.Generator
) -> torch.Tensor:
    """Return the gene of a child before mutation. Shape is (L,).

    Args:
        genes: Genes of all agents. Shape is (K, L).
        fitness: Fitness of all agents.
        parents: Slots of the two parents.
        mode: ``average``; ``uniform``, each element from either parent; ``fitness_weighted``, the fitter counts more;
            or a function of one's own, as ``module:function``.
        generator: The population's generator.
    """
    if ":" in mode:
        return own_crossover(mode)(genes, fitness, parents, generator)
    first, second = genes[parents[0]], genes[parents[1]]
    if mode == "average":
        return 0.5 * (first + second)
    if mode == "uniform":
        return torch.where(torch.rand(first.shape, generator=generator) < 0.5, first, second)
    above = fitness[list(parents)] - fitness[1:].min() + 1e-8
    weight = float(above[0] / above.sum())
    return weight * first + (1.0 - weight) * second
