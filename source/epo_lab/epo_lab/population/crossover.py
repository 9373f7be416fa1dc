"""The child of two genes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

import torch

from epo_lab.base.errors import UserError

from .winners import mix

HINDSIGHT = "hindsight"
"""Crossover of an elite with one of the event before."""


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
            ``hindsight``, as ``uniform``, where the second parent is an elite of the event before;
            or a function of one's own, as ``module:function``.
        generator: The population's generator.
    """
    function = own_crossover(mode) if ":" in mode else CROSSOVERS[mode]
    return function(genes, fitness, parents, generator)


def _average(
    genes: torch.Tensor, fitness: torch.Tensor, parents: tuple[int, int], generator: torch.Generator
) -> torch.Tensor:
    return 0.5 * (genes[parents[0]] + genes[parents[1]])


def _uniform(
    genes: torch.Tensor, fitness: torch.Tensor, parents: tuple[int, int], generator: torch.Generator
) -> torch.Tensor:
    return mix(genes[parents[0]], genes[parents[1]], generator)


def _fitness_weighted(
    genes: torch.Tensor, fitness: torch.Tensor, parents: tuple[int, int], generator: torch.Generator
) -> torch.Tensor:
    # w = (F_1 - F_worst) / (F_1 + F_2 - 2 F_worst)
    above = fitness[list(parents)] - fitness[1:].min() + 1e-8
    weight = float(above[0] / above.sum())
    return weight * genes[parents[0]] + (1.0 - weight) * genes[parents[1]]


CROSSOVERS: dict[str, Callable[..., torch.Tensor]] = {
    "average": _average,
    "uniform": _uniform,
    "fitness_weighted": _fitness_weighted,
    HINDSIGHT: _uniform,
}
