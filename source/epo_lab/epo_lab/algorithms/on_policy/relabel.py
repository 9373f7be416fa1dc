"""Which columns the master learns from besides its own, and what they are worth under its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDict

from epo_lab.base.keys import AGENT_ID
from epo_lab.models.hidden import copy_state
from epo_lab.storage.rollout import PopulationStorage

from .targets import one_step_returns, vtrace_advantages
from .value_normalizer import ValueNormalizer, denormalized

SAMPLINGS = ("envs", "block", "all", "symmetric", "none")


def num_relabelled(agent_ids: torch.Tensor, num_agents: int, sampling: str, ratio: int = 1) -> int:
    """Return how many columns are relabelled in every iteration.

    Args:
        agent_ids: Agent of every column.
        num_agents: Number of agents.
        sampling: Rule of :func:`choose_columns`.
        ratio: Followers (``block``) or multiples of the master's columns (``envs``) that are taken.
    """
    counts = torch.bincount(agent_ids, minlength=num_agents)
    share, followers = int(counts[1:].min()) if num_agents > 1 else 0, int(counts[1:].sum())
    if num_agents == 1 or sampling == "none":
        return 0
    if sampling == "symmetric":
        return len(agent_ids)
    if sampling == "all":
        return followers
    return min(ratio, num_agents - 1) * share


def choose_columns(
    agent_ids: torch.Tensor, num_agents: int, sampling: str, count: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the columns to relabel and the agents they are relabelled as. Shapes are (count,).

    Args:
        agent_ids: Agent of every column, on the CPU.
        num_agents: Number of agents.
        sampling: ``envs`` draws follower columns uniformly; ``block`` takes all columns of random followers; ``all``
            takes every follower column; ``symmetric`` gives every column of agent b to agent (b - s) mod K too, for
            a random shift s.
        count: Number of columns, as :func:`num_relabelled` says.
        generator: Generator of these draws.
    """
    if sampling == "symmetric":
        shift = int(torch.randint(1, num_agents, (1,), generator=generator))
        return torch.arange(len(agent_ids)), (agent_ids - shift) % num_agents
    if sampling == "block":
        share = int(torch.bincount(agent_ids, minlength=num_agents)[1:].min())
        chosen = torch.randperm(num_agents - 1, generator=generator)[: count // share] + 1
        columns = torch.isin(agent_ids, chosen).nonzero().flatten()
    else:
        columns = (agent_ids > 0).nonzero().flatten()
        if sampling == "envs":
            columns = columns[torch.randperm(len(columns), generator=generator)[:count]]
    return columns, torch.zeros_like(columns)


@dataclass
class Values:
    """What columns of a roll-out are worth under other labels; shapes are (T, S, 1)."""

    old: Relabelled
    """Old quantities under the new labels."""
    values: torch.Tensor
    """Values in units of the return."""
    targets: torch.Tensor
    """Critic targets in units of the return."""
    advantages: torch.Tensor
    """What the actions were better than the values say."""
    ratios: torch.Tensor
    """Importance ratios of the new agent to the one that acted."""


def value_as(
    storage: PopulationStorage,
    actor: Any,
    critic: Any,
    columns: torch.Tensor,
    labels: torch.Tensor,
    last_obs: TensorDict,
    rewards: torch.Tensor,
    *,
    gamma: float,
    normalizer: ValueNormalizer | None,
    stored_hidden: bool,
    lam: float | None = None,
) -> Values:
    """Return columns as they are under other labels, their values and their targets.

    Args:
        storage: The roll-out.
        actor: The actor.
        critic: The critic.
        columns: Columns of the roll-out. Shape is (S,).
        labels: Agents they are evaluated as. Shape is (S,).
        last_obs: Observations after the last step, of all columns.
        rewards: The task's rewards, with time-outs bootstrapped by the agent that acted. Shape is (T, N, 1).
        gamma: Discount.
        normalizer: Normaliser of the critic's output, if there is one.
        stored_hidden: Whether recurrent states are the stored ones of every step, instead of rolled out again.
        lam: Weight of longer horizons in V-trace targets. Defaults to None: one-step targets (EPO eq. 8).
    """
    hidden = storage.hidden_of(columns)
    if stored_hidden:
        hidden.append((None, copy_state(critic.get_hidden_state(), columns)))
    actions, dones = storage.actions[:, columns], storage.dones[:, columns]
    old = evaluate(actor, critic, storage.observations[:, columns], actions, dones, last_obs[columns], labels, hidden)
    values, last_values = denormalized(old.values, normalizer), denormalized(old.last_values, normalizer)
    # Importance ratio of the agent that learns to the one that acted
    ratios = torch.exp(old.log_prob - storage.actions_log_prob[:, columns])
    data = (rewards[:, columns], storage.time_outs[:, columns], dones, storage.values[:, columns], values, last_values)
    if lam is None:
        targets = one_step_returns(*data, gamma)
        return Values(old, values, targets, targets - values, ratios)
    return Values(old, values, *vtrace_advantages(*data, gamma, lam, ratios), ratios)


def fill_relabelled(
    storage: PopulationStorage, columns: torch.Tensor, labels: torch.Tensor, worth: Values, clip: str
) -> None:
    """Write the relabelled columns into the storage.

    Args:
        storage: The roll-out.
        columns: Columns that are relabelled. Shape is (S,).
        labels: Agents they are relabelled as. Shape is (S,).
        worth: What they are worth under these.
        clip: ``fixed`` clips around the behaviour policy, ``mu`` around the new agent's old policy (EPO eq. 4).
    """
    st, n = storage, storage.num_envs
    st.source[n:], st.labels[n:] = columns, labels
    st.values[:, n:], st.returns[:, n:] = worth.values, worth.targets
    st.advantages[:, n:] = worth.advantages
    for kept, new in zip(st.distribution_params, worth.old.params, strict=True):
        kept[:, n:] = new
    st.actions_log_prob[:, n:] = st.actions_log_prob[:, columns] if clip == "fixed" else worth.old.log_prob


def offpolicy_scalars(mu: torch.Tensor, kl: torch.Tensor, own_rows: float) -> dict[str, torch.Tensor]:
    """Return how far the relabelled data are from the policy that learns from them.

    Args:
        mu: Importance ratios of the relabelled rows.
        kl: Divergence of the policies that acted from the one that learns, by row.
        own_rows: Number of the master's own rows.
    """
    # Effective sample size: (sum w)^2 / sum w^2, where the master's own rows have weight 1
    total, square = own_rows + mu.sum(), own_rows + mu.square().sum()
    return {
        "Population/is_deviation": (1.0 - mu).abs().mean(),
        "Population/effective_sample_size": total.square() / ((own_rows + mu.numel()) * square),
        "Population/kl_to_master": kl.mean(),
    }


class Relabelled:
    """Old quantities of relabelled columns under their new labels; all of shape (T, S, ...)."""

    values: torch.Tensor
    last_values: torch.Tensor
    log_prob: torch.Tensor
    params: tuple[torch.Tensor, ...]


def evaluate(
    actor: Any,
    critic: Any,
    observations: TensorDict,
    actions: torch.Tensor,
    dones: torch.Tensor,
    last_obs: TensorDict,
    labels: torch.Tensor,
    hidden: list[tuple[Any, Any]],
) -> Relabelled:
    """Evaluate columns under other labels, without gradient; recurrent models are rolled out again from ``hidden``.

    Args:
        actor: The actor.
        critic: The critic.
        observations: Observations of the columns. Batch size is (T, S).
        actions: Actions that were taken. Shape is (T, S, A).
        dones: Whether an episode ended. Shape is (T, S, 1).
        last_obs: Observations after the last step. Batch size is (S,).
        labels: New agents of the columns. Shape is (S,).
        hidden: States of actor and critic before the first step, or before every step and after the last.
    """
    steps, count = actions.shape[:2]
    observations = observations.clone(recurse=False)
    observations[AGENT_ID] = labels.view(1, -1, 1).expand(steps, count, 1).contiguous()
    last_obs = last_obs.clone(recurse=False)
    last_obs[AGENT_ID] = labels.unsqueeze(-1)
    result = Relabelled()
    if actor.is_recurrent or critic.is_recurrent:
        _unroll(result, actor, critic, observations, actions, dones, last_obs, hidden)
        return result
    flat = observations.flatten(0, 1)
    actor(flat, stochastic_output=True)
    result.log_prob = actor.get_output_log_prob(actions.flatten(0, 1)).view(steps, count, 1)
    result.params = tuple(p.view(steps, count, -1) for p in actor.output_distribution_params)
    result.values = critic(flat).view(steps, count, 1)
    result.last_values = critic(last_obs)
    return result


def _unroll(
    result: Relabelled,
    actor: Any,
    critic: Any,
    observations: TensorDict,
    actions: torch.Tensor,
    dones: torch.Tensor,
    last_obs: TensorDict,
    hidden: list[tuple[Any, Any]],
) -> None:
    """Step recurrent models through the columns; their live states are put back afterwards."""
    live = actor.get_hidden_state(), critic.get_hidden_state()
    log_prob, values, params = [], [], []
    for step in range(len(actions)):
        if step < len(hidden):
            actor.reset(hidden_state=hidden[step][0])
            critic.reset(hidden_state=hidden[step][1])
        actor(observations[step], stochastic_output=True)
        log_prob.append(actor.get_output_log_prob(actions[step]).unsqueeze(-1))
        params.append(actor.output_distribution_params)
        values.append(critic(observations[step]))
        done = dones[step].squeeze(-1)
        actor.reset(done)
        critic.reset(done)
    if len(hidden) > len(actions):
        critic.reset(hidden_state=hidden[-1][1])
    result.last_values = critic(last_obs)
    result.log_prob, result.values = torch.stack(log_prob), torch.stack(values)
    result.params = tuple(torch.stack(list(parts)) for parts in zip(*params, strict=True))
    actor.reset(hidden_state=live[0])
    critic.reset(hidden_state=live[1])
