"""Advantages and critic targets of on-policy data."""

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
        target = last_values if end == steps else values[end]
        for step in reversed(range(start, end)):
            target = rewards[step] + gamma * (1.0 - dones[step].float()) * target
        out[start] = target
