"""Put children into the slots of those they replace: genes, action noise and the optimizer's memory of both."""

from __future__ import annotations

import torch
from torch import nn

from epo_lab.population.genetics import Child


@torch.no_grad()
def replace_agents(
    children: list[Child], genes: nn.Parameter, log_std: nn.Parameter | None, optimizer: torch.optim.Optimizer
) -> None:
    """Write the children in place; every other row, and all that agents share, stays bit-identical.

    The first Adam moment of a child is zero and the second the mean of its parents': with both at zero the step
    counter, which belongs to the whole table, would make its first steps more than six times too long.

    Args:
        children: Who takes which slot.
        genes: Genes of all agents.
        log_std: Action noise of all agents; None if children do not inherit it.
        optimizer: The optimizer of both.
    """
    tables = [genes] if log_std is None else [genes, log_std]
    # all children are made from the tables as they were before the event
    before = {table: table.detach().clone() for table in tables}
    moments = {table: optimizer.state.get(table, {}) for table in tables}
    second = {table: state["exp_avg_sq"].clone() for table, state in moments.items() if "exp_avg_sq" in state}
    for child in children:
        pair = list(child.parents)
        genes[child.slot] = child.gene.to(genes.device)
        if log_std is not None:
            log_std[child.slot] = before[log_std][pair].mean(dim=0)
        for table in tables:
            if table in second:
                moments[table]["exp_avg"][child.slot] = 0.0
                moments[table]["exp_avg_sq"][child.slot] = second[table][pair].mean(dim=0)
