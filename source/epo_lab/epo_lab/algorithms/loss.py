"""The loss of a mini-batch (section 6.1 of the method: PPO for every row, under the row's own agent)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

BOUND = 1.1
"""Action means beyond +- this are pulled back by the bounds loss."""


@dataclass
class Loss:
    """The loss and its parts, each a scalar tensor."""

    total: torch.Tensor
    surrogate: torch.Tensor
    value: torch.Tensor
    entropy: torch.Tensor
    ratio: torch.Tensor
    """Probability ratio of every row, for the diagnostics."""
    surrogate_rows: torch.Tensor
    """Surrogate loss of every row, for the diagnostics."""


def mini_batch_loss(
    batch: Any,
    log_prob: torch.Tensor,
    values: torch.Tensor,
    entropy: torch.Tensor,
    mean: torch.Tensor,
    *,
    clip: float,
    value_coef: float,
    clip_value: bool,
    entropy_coef: float | torch.Tensor,
    bounds_coef: float,
    relabelled_weight: float,
) -> Loss:
    """Return the loss; with neutral options it is rsl_rl's, operation by operation.

    Args:
        batch: The mini-batch; a population's batch also knows which rows are relabelled.
        log_prob: Log-probability of the actions under the current policy.
        values: Values under the current critic.
        entropy: Entropy of every row's policy.
        mean: Action means.
        clip: Clip range of ratios and values.
        value_coef: Weight of the value loss.
        clip_value: Whether the value loss is clipped.
        entropy_coef: Weight of the entropy; a table by agent if the agents differ.
        bounds_coef: Weight of the bounds loss.
        relabelled_weight: Weight lambda of relabelled rows.
    """
    weights = None
    if relabelled_weight != 1.0 and getattr(batch, "relabelled", None) is not None:
        weights = torch.where(batch.relabelled, relabelled_weight, 1.0)

    def average(rows: torch.Tensor) -> torch.Tensor:
        return rows.mean() if weights is None else (weights.view_as(rows) * rows).mean()

    advantages = torch.squeeze(batch.advantages)
    ratio = torch.exp(log_prob - torch.squeeze(batch.old_actions_log_prob))
    surrogate = -advantages * ratio
    clipped = -advantages * torch.clamp(ratio, 1.0 - clip, 1.0 + clip)
    surrogate_rows = torch.max(surrogate, clipped)
    surrogate_loss = average(surrogate_rows)

    if clip_value:
        near = batch.values + (values - batch.values).clamp(-clip, clip)
        value_rows = torch.max((values - batch.returns).pow(2), (near - batch.returns).pow(2))
    else:
        value_rows = (batch.returns - values).pow(2)
    value_loss = average(value_rows)

    if isinstance(entropy_coef, torch.Tensor):
        entropy_bonus = average(entropy_coef[batch.labels] * entropy)
    elif weights is not None:
        entropy_bonus = entropy_coef * average(entropy)
    else:
        entropy_bonus = entropy_coef * entropy.mean()
    total = surrogate_loss + value_coef * value_loss - entropy_bonus
    if bounds_coef:
        excess = (mean - BOUND).clamp(min=0.0) + (-BOUND - mean).clamp(min=0.0)
        total = total + bounds_coef * average(excess.pow(2).sum(dim=-1))
    return Loss(total, surrogate_loss, value_loss, entropy.mean(), ratio, surrogate_rows)


def entropy_coefficients(base: float, scale: float, num_agents: int, device: str) -> float | torch.Tensor:
    """Return the entropy coefficients: one number, or rising with the agent's number (release meaning)."""
    if num_agents == 1 or scale == 0.0:
        return base
    return base + 0.5 * scale * torch.arange(num_agents, device=device) / (num_agents - 1)
