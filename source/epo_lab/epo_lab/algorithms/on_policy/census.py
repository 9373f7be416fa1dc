"""A closer look at the population now and then: every agent by itself, and how far all are from each other."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from tensordict import TensorDict

from epo_lab.base.keys import AGENT_ID
from epo_lab.population.divergence import cosine, nearest_is_master, pairwise_kl
from epo_lab.population.novelty import most_novel
from epo_lab.storage.batch import Batch
from epo_lab.storage.rollout import PopulationStorage

from .loss import Loss

MOST_STATES, MOST_ROWS, MOST_IN_MATRIX = 1024, 1 << 16, 64
"""States that all agents are compared in, states times agents, and agents whose whole matrix is recorded."""


@torch.no_grad()
def policies_in_the_same_states(
    actor: Any, storage: PopulationStorage, agent_ids: torch.Tensor, num_agents: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return means and standard deviations of all agents in the same states. Shapes are (K, M, A).

    The states are those at the beginning of the roll-out, equally many of every agent. A recurrent policy is evaluated
    for one step from the recurrent state that the column's own agent had there.

    Args:
        actor: The actor, not compiled.
        storage: The roll-out.
        agent_ids: Agent of every column, on the device.
        num_agents: Number of agents.
    """
    columns = _balanced_columns(agent_ids, num_agents)
    mean, std = actor.distribution_params(*_same_states(storage, columns, num_agents))
    return mean.view(num_agents, len(columns), -1), std.view(num_agents, len(columns), -1)


@torch.no_grad()
def choose_novel(
    actor: Any,
    storage: PopulationStorage,
    agent_ids: torch.Tensor,
    num_agents: int,
    candidates: torch.Tensor,
    count: int,
) -> list[int]:
    """Return the places of those genes whose policies differ most from all agents' in the states of the roll-out.

    Args:
        actor: The actor, not compiled.
        storage: The roll-out.
        agent_ids: Agent of every column, on the device.
        num_agents: Number of agents.
        candidates: Genes to choose from. Shape is (C, L).
        count: How many to choose.
    """
    genes = torch.cat([actor.genes.detach(), candidates.to(actor.genes.device)])
    everybody = copy.copy(actor)
    everybody._gene_table = (genes,)
    columns = _balanced_columns(agent_ids, num_agents)
    # so many states that all pairs of policies are compared in one go
    columns = columns[:: math.ceil(len(columns) * len(genes) / MOST_ROWS)]
    means = everybody.mlp(everybody.get_latent(*_same_states(storage, columns, len(genes))))
    means = means.view(len(genes), len(columns), -1)
    std = actor.distribution.log_std_param.exp().mean(dim=0)
    return most_novel(means[:num_agents], means[num_agents:], std, count)


def _same_states(storage: PopulationStorage, columns: torch.Tensor, number: int) -> tuple[TensorDict, Any, Any]:
    """Return the first states of some columns once for each of so many agents, with masks and recurrent states."""
    agents, count = torch.arange(number, device=columns.device), len(columns)
    rows = storage.observations[0][columns].exclude(AGENT_ID).expand(number, count).flatten(0, 1)
    rows[AGENT_ID] = agents.repeat_interleave(count).unsqueeze(-1)
    states = storage.first_hidden[0]
    if states is None:
        return rows, None, None
    masks = torch.ones(1, len(rows), dtype=torch.bool, device=columns.device)
    parts = [state[:, columns].repeat(1, number, 1) for state in states]
    return rows.unsqueeze(0), masks, tuple(parts) if len(parts) > 1 else parts[0]


def census(
    mean: torch.Tensor, std: torch.Tensor, genes: torch.Tensor, fitness: torch.Tensor
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return numbers for the log, and a record with a value for every agent.

    Args:
        mean: Action means of all agents in the same states. Shape is (K, M, A).
        std: Standard deviations. Shape is (K, M, A).
        genes: Genes of all agents, on the CPU. Shape is (K, L).
        fitness: Fitness of all agents; NaN if it is not known. Shape is (K,).
    """
    # Divergence KL(i || j) of all pairs of policies
    divergence = pairwise_kl(mean, std).cpu()
    num_agents = len(divergence)
    to_master = divergence[1:, 0]
    off_diagonal = divergence[~torch.eye(num_agents, dtype=torch.bool)]
    scalars = {
        "Population/kl_pairwise": float(off_diagonal.mean()),
        "Population/kl_pairwise_max": float(off_diagonal.max()),
        "Population/kl_to_master_max": float(to_master.max()),
        "Population/nearest_is_master": nearest_is_master(divergence),
    }
    # Entropy of a Gaussian: sum_a log std_a + log(2 pi e) / 2
    entropy = (std.log() + 0.5 * math.log(2.0 * math.pi * math.e)).sum(dim=-1)
    record = {
        "fitness": [None if math.isnan(value) else value for value in fitness.tolist()],
        "entropy": entropy.mean(dim=1).tolist(),
        "action_std": std.mean(dim=(1, 2)).tolist(),
        "gene_norm": genes.norm(dim=1).tolist(),
        "kl_to_master": divergence[:, 0].tolist(),
    }
    if num_agents <= MOST_IN_MATRIX:
        record["kl"] = divergence.tolist()
        record["genes"] = [[round(value, 4) for value in gene] for gene in genes.tolist()]
    return scalars, record


@torch.no_grad()
def master_ratios(actor: Any, storage: PopulationStorage, columns: torch.Tensor) -> torch.Tensor:
    """Return the importance ratios of the master's policy to those that acted. Shape is (T, S).

    Nothing is drawn, so that looking closer changes no run. A recurrent policy is rolled out again from the states that
    the columns' own agents began with.

    Args:
        actor: The actor, not compiled.
        storage: The roll-out.
        columns: Columns to look at. Shape is (S,).
    """
    rows = storage.observations[:, columns].exclude(AGENT_ID)
    rows[AGENT_ID] = torch.zeros(*rows.batch_size, 1, dtype=torch.long, device=columns.device)
    live = actor.get_hidden_state()
    if actor.is_recurrent:
        actor.reset(hidden_state=storage.hidden_of(columns)[0][0])
    # The master's policy in every state of the columns
    params = []
    for step in range(len(rows)):
        params.append(actor.distribution_params(rows[step]))
        actor.reset(storage.dones[step, columns].squeeze(-1))
    if actor.is_recurrent:
        actor.reset(hidden_state=live)
    # Importance ratio: pi_master(u | s) / pi_follower(u | s)
    mean, std = (torch.stack(list(parts)) for parts in zip(*params, strict=True))
    log_prob = torch.distributions.Normal(mean, std).log_prob(storage.actions[:, columns]).sum(dim=-1)
    return torch.exp(log_prob - storage.actions_log_prob[:, columns].squeeze(-1))


def follower_scalars(mu: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return how far all data of the followers are from the master, whichever it learns from (CPO, table 2).

    Args:
        mu: Importance ratios of the followers' rows, the master's policy over theirs.
    """
    return {
        "Population/is_deviation_all": (1.0 - mu).abs().mean(),
        "Population/effective_sample_size_all": mu.sum().square() / (mu.numel() * mu.square().sum()),
    }


def gradient_cosine(actor: Any, batch: Batch, loss: Loss) -> dict[str, float]:
    """Return the cosine between the policy gradients of relabelled and of on-policy rows; nothing without both.

    Weights that are shared count, genes and noise do not: these belong to one agent each.
    """
    relabelled = batch.relabelled.reshape(loss.surrogate_rows.shape)
    if not bool(relabelled.any()) or bool(relabelled.all()):
        return {}
    own = {id(actor.genes), *map(id, actor.distribution.parameters())}
    shared = [parameter for parameter in actor.parameters() if id(parameter) not in own]
    gradients = [
        list(torch.autograd.grad(loss.surrogate_rows[rows].mean(), shared, retain_graph=True))
        for rows in (relabelled, ~relabelled)
    ]
    return {"Population/gradient_cosine": cosine(*gradients)}


def _balanced_columns(agent_ids: torch.Tensor, num_agents: int) -> torch.Tensor:
    """Return equally many columns of every agent, or one of every so manieth agent if there are too many."""
    most = min(MOST_STATES, max(MOST_ROWS // num_agents, 1))
    counts = torch.bincount(agent_ids, minlength=num_agents)
    share = min(max(most // num_agents, 1), int(counts.min()))
    # The first so many columns of every agent, found by each column's place among its agent's
    by_agent = torch.sort(agent_ids, stable=True).indices
    place = torch.arange(len(agent_ids), device=agent_ids.device) - (counts.cumsum(0) - counts)[agent_ids[by_agent]]
    columns = by_agent[place < share]
    return columns[:: math.ceil(len(columns) / most)]
