"""Which agent acts in which environment."""

from __future__ import annotations

import math

import torch

from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT


def follower_envs(num_envs: int, num_agents: int, master_share: float | None = None) -> int:
    """Return how many environments each follower has; the master has the others.

    Args:
        num_envs: Number of environments.
        num_agents: Number of agents.
        master_share: Share of the environments that the master has. Defaults to None: as many as every other agent.
    """
    if master_share is None or num_agents == 1:
        return num_envs // num_agents
    return math.floor(num_envs * (1.0 - master_share) + 1e-9) // (num_agents - 1)


def assign_agents(
    num_envs: int, num_agents: int, seed: int = 0, *, allow_uneven: bool = False, master_share: float | None = None
) -> torch.Tensor:
    """Return the agent of every environment, constant for the whole run. Shape is (num_envs,), int64.

    Every agent gets a random set; those of the followers have the same size. Terrain columns and object sets follow the
    environment's index, so that a range of environments for each would confound an agent with what it is given to do.

    Args:
        num_envs: Number of environments.
        num_agents: Number of agents.
        seed: Seed of the shuffle.
        allow_uneven: Whether the master gets the rest if the agents do not divide the environments.
        master_share: Share of the environments that the master has. Defaults to None: as many as every other agent.
    """
    check_division(num_envs, num_agents, allow_uneven=allow_uneven, master_share=master_share)
    share = follower_envs(num_envs, num_agents, master_share)
    agents = torch.arange(num_agents).repeat_interleave(share)
    agents = torch.cat([agents.new_zeros(num_envs - len(agents)), agents])
    return agents[torch.randperm(num_envs, generator=torch.Generator().manual_seed(seed))]


def own_slots(number: int, rank: int, num_processes: int) -> range:
    """Return the members of a divided population that a process has: equally many, one range after the other."""
    share = number // num_processes
    return range(rank * share, (rank + 1) * share)


def check_processes(number: int, num_processes: int, name: str = "members") -> None:
    """Raise a :class:`UserError` if processes cannot divide a population evenly.

    Args:
        number: Number of its members.
        num_processes: Number of processes.
        name: What its members are called.
    """
    if number % num_processes:
        raise UserError(
            f"{num_processes} processes cannot divide {number} {name} evenly: start as many as divide them, or set"
            f" {ROOT}.num_agents to a multiple of {num_processes}"
        )


def check_division(
    num_envs: int, num_agents: int, *, allow_uneven: bool = False, master_share: float | None = None
) -> None:
    """Raise a :class:`UserError` that names the nearest numbers if the agents cannot share the environments."""
    if master_share is not None and num_agents > 1:
        if follower_envs(num_envs, num_agents, master_share) < 1:
            raise UserError(
                f"{ROOT}.master_share {master_share} leaves {num_agents - 1} followers no environment each of"
                f" {num_envs}: use a smaller share, fewer agents ({ROOT}.num_agents) or more environments (--num_envs)"
            )
        return
    if num_envs >= num_agents and (allow_uneven or num_envs % num_agents == 0):
        return
    lower, upper = num_envs // num_agents * num_agents, -(-num_envs // num_agents) * num_agents
    envs = " or ".join(str(number) for number in sorted({lower, upper}) if number > 0)
    divisors = [number for number in range(1, num_envs + 1) if num_envs % number == 0]
    agents = " or ".join(str(number) for number in sorted(divisors, key=lambda d: abs(d - num_agents))[:2])
    raise UserError(
        f"{num_agents} agents cannot share {num_envs} environments evenly:"
        f" use {envs} environments (--num_envs), or {agents} agents (agent.algorithm.num_agents)"
    )
