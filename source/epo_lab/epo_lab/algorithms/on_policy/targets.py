"""Critic targets, of on-policy and of relabelled data."""

from __future__ import annotations

import torch


def gae_returns(
    rewards: torch.Tensor,
    values: torch.Tensor,
    dones: torch.Tensor,
    last_values: torch.Tensor,
    gamma: float,
    lam: float,
    out: torch.Tensor,
) -> None:
    """Write returns with generalised advantage estimation, operation by operation as rsl_rl does.

    Args:
        rewards: Rewards with time-outs bootstrapped. Shape is (T, N, 1).
        values: Values of the acting agents. Shape is (T, N, 1).
        dones: Whether the episode ended because of a step. Shape is (T, N, 1).
        last_values: Values after the last step. Shape is (N, 1).
        gamma: Discount.
        lam: Weight of longer horizons.
        out: Where the returns go. Shape is (T, N, 1).
    """
    advantage: torch.Tensor | float = 0
    for step in reversed(range(len(rewards))):
        next_values = last_values if step == len(rewards) - 1 else values[step + 1]
        alive = 1.0 - dones[step].float()
        # Generalised advantage: delta_t = r_t + gamma V(s_t+1) - V(s_t),  A_t = delta_t + gamma lambda A_t+1
        delta = rewards[step] + alive * gamma * next_values - values[step]
        advantage = delta + alive * gamma * lam * advantage
        out[step] = advantage + values[step]


def nstep_returns(
    rewards: torch.Tensor,
    values: torch.Tensor,
    dones: torch.Tensor,
    last_values: torch.Tensor,
    gamma: float,
    horizon: int,
    out: torch.Tensor,
) -> None:
    """Write returns over at most ``horizon`` steps, cut at the end of episode and roll-out (EPO eq. 6).

    Args:
        rewards: Rewards with time-outs bootstrapped. Shape is (T, N, 1).
        values: Values of the acting agents. Shape is (T, N, 1).
        dones: Whether the episode ended because of a step. Shape is (T, N, 1).
        last_values: Values after the last step. Shape is (N, 1).
        gamma: Discount.
        horizon: Number of rewards that are summed up.
        out: Where the returns go. Shape is (T, N, 1).
    """
    steps = len(rewards)
    for start in range(steps):
        end = min(start + horizon, steps)
        # n-step target: r_t + gamma r_t+1 + ... + gamma^n V(s_t+n) (EPO eq. 6)
        target = last_values if end == steps else values[end]
        for step in reversed(range(start, end)):
            target = rewards[step] + gamma * (1.0 - dones[step].float()) * target
        out[start] = target


def one_step_returns(
    rewards: torch.Tensor,
    time_outs: torch.Tensor,
    dones: torch.Tensor,
    behaviour_values: torch.Tensor,
    values: torch.Tensor,
    last_values: torch.Tensor,
    gamma: float,
) -> torch.Tensor:
    """Return the targets of relabelled data, r + gamma V(next) under the new label (EPO eq. 8).

    Args:
        rewards: Rewards with time-outs bootstrapped by the agent that acted. Shape is (T, S, 1).
        time_outs: Whether an episode ended because its time was over. Shape is (T, S, 1).
        dones: Whether an episode ended because of a step. Shape is (T, S, 1).
        behaviour_values: Values of the agents that acted. Shape is (T, S, 1).
        values: Values under the new label. Shape is (T, S, 1).
        last_values: Values under the new label after the last step. Shape is (S, 1).
        gamma: Discount.
    """
    # At time-outs the stored reward holds gamma V of the agent that acted; the new label's belongs there
    rewards = rewards + gamma * time_outs * (values - behaviour_values)
    # One-step target of the new label: r_t + gamma V(s_t+1) (EPO eq. 8)
    next_values = torch.cat([values[1:], last_values.unsqueeze(0)])
    return rewards + gamma * (1.0 - dones.float()) * next_values


def vtrace_advantages(
    rewards: torch.Tensor,
    time_outs: torch.Tensor,
    dones: torch.Tensor,
    behaviour_values: torch.Tensor,
    values: torch.Tensor,
    last_values: torch.Tensor,
    gamma: float,
    lam: float,
    ratios: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return V-trace targets and advantages of relabelled data: generalised advantages, cut where policies differ.

        d_t = min(1, rho_t) (delta_t + gamma lambda d_{t+1})      (IMPALA eq. 1, c = lambda min(1, rho))

    The target is V + d, the advantage of the action delta_t + gamma lambda d_{t+1}. With equal policies both are those
    of generalised advantages.

    Args:
        rewards, time_outs, dones, behaviour_values, values, last_values, gamma: As in :func:`one_step_returns`.
        lam: Weight of longer horizons.
        ratios: Importance ratios rho of the new label to who acted. Shape is (T, S, 1).
    """
    one_step = one_step_returns(rewards, time_outs, dones, behaviour_values, values, last_values, gamma) - values
    weights, decay = ratios.clamp(max=1.0), gamma * lam * (1.0 - dones.float())
    advantages, traces = torch.empty_like(values), torch.empty_like(values)
    trace = torch.zeros_like(last_values)
    for step in reversed(range(len(values))):
        advantages[step] = one_step[step] + decay[step] * trace
        trace = traces[step] = weights[step] * advantages[step]
    return values + traces, advantages
