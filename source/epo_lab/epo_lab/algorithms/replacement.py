"""Put children into the slots of those they replace: genes, action noise and the optimizer's memory of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from epo_lab.envs.episodes import end_episodes
from epo_lab.population.genetics import Child

if TYPE_CHECKING:
    from .epo import EPO


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


def restart_agents(alg: EPO, slots: list[int]) -> None:
    """Let replaced agents begin anew: their fitness and, if asked for, recurrent states and episodes."""
    alg.fitness.restart(slots)
    columns = torch.isin(alg.ids_cpu, torch.tensor(slots)).nonzero().flatten().to(alg.device)
    env = None if alg.env is None else alg.env()
    with torch.inference_mode():
        if alg.options.on_replace_hidden == "zero" and (alg.actor.is_recurrent or alg.critic.is_recurrent):
            dones = torch.zeros(alg.storage.num_envs, device=alg.device)
            dones[columns] = 1.0
            alg.actor.reset(dones)
            alg.critic.reset(dones)
        if alg.options.reset_envs and env is not None:
            end_episodes(env, columns)
