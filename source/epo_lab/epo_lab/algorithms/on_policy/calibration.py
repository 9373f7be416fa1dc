"""Genes whose scale means the same on every task: a divergence between policies, not a length."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from epo_lab.population.divergence import pairwise_kl
from epo_lab.storage.rollout import PopulationStorage

from .census import policies_in_the_same_states

LEAST, MOST, HALVINGS = 0.01, 10.0, 20
"""Range of the factor: gates that are saturated by large genes would never differ as much as is asked for."""


def divergence_factor(
    actor: Any, storage: PopulationStorage, agent_ids: torch.Tensor, num_agents: int, target: float
) -> float:
    """Return the factor on all distances from the master at which two policies diverge by so much on average.

    It is at most 10, even if that is not enough.

    Args:
        actor: The actor, not compiled; its genes are what they were when this returns.
        storage: The roll-out in whose first states all agents are compared.
        agent_ids: Agent of every column, on the device.
        num_agents: Number of agents.
        target: Mean Kullback-Leibler divergence over all pairs.
    """
    drawn = actor.genes.detach().clone()
    others = ~torch.eye(num_agents, dtype=torch.bool)

    def divergence(factor: float) -> float:
        spread_genes(actor.genes, factor)
        found = pairwise_kl(*policies_in_the_same_states(actor, storage, agent_ids, num_agents)).cpu()
        with torch.no_grad():
            actor.genes.copy_(drawn)
        return float(found[others].mean())

    # The divergence grows about with the square of the factor: halve its range on a logarithmic scale
    low, high = LEAST, MOST
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if divergence(middle) < target else (low, middle)
    return (low * high) ** 0.5


@torch.no_grad()
def spread_genes(genes: nn.Parameter, factor: float) -> None:
    """Multiply all distances from the master's gene by a factor."""
    genes.copy_(torch.lerp(genes[:1].expand_as(genes), genes, factor))
