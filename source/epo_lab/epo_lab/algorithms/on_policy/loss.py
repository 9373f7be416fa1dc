"""PPO's loss of a mini-batch, under the agent of each row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from epo_lab.storage.batch import Batch


@dataclass
class Loss:
    """The loss and its parts, each a scalar tensor."""

    total: torch.Tensor
    surrogate: torch.Tensor
    value: torch.Tensor
    entropy: torch.Tensor
    ratio: torch.Tensor
    """Importance ratio of every row."""
    surrogate_rows: torch.Tensor
    """Surrogate loss of every row."""


def mini_batch_loss(
    batch: Batch,
    log_prob: torch.Tensor,
    values: torch.Tensor,
    entropy: torch.Tensor,
    *,
    clip: float,
    value_coef: float,
    clip_value: bool,
    entropy_coef: float | torch.Tensor,
    dual_clip: float | None = None,
) -> Loss:
    """Return the loss; with neutral options it is rsl_rl's, operation by operation.

    Args:
        batch: The mini-batch.
        log_prob: Log-probability of the actions under the current policy.
        values: Values under the current critic.
        entropy: Entropy of every row's policy.
        clip: Clip range of ratios and values.
        value_coef: Weight of the value loss.
        clip_value: Whether the value loss is clipped.
        entropy_coef: Weight of the entropy; a table by agent if the agents differ.
        dual_clip: Ratio from which on relabelled rows with a negative advantage count no more. Defaults to None: none.
    """
    # Surrogate loss, clipped around the policy that the stored log-probabilities belong to (PPO; EPO eqs. 2 and 4)
    advantages = torch.squeeze(batch.advantages)
    ratio = torch.exp(log_prob - torch.squeeze(batch.old_actions_log_prob))
    surrogate = -advantages * ratio
    clipped = -advantages * torch.clamp(ratio, 1.0 - clip, 1.0 + clip)
    surrogate_rows = torch.max(surrogate, clipped)
    if dual_clip is not None and batch.relabelled is not None:
        # Dual clip: with A < 0 the loss -A ratio has no bound of its own; it gets -A c
        bound = torch.where(batch.relabelled.view_as(ratio) & (advantages < 0), -dual_clip * advantages, torch.inf)
        surrogate_rows = torch.min(surrogate_rows, bound)
    surrogate_loss = batch.mean(surrogate_rows)

    # Value loss, clipped around the values of the roll-out
    if clip_value:
        near = batch.values + (values - batch.values).clamp(-clip, clip)
        value_rows = torch.max((values - batch.returns).pow(2), (near - batch.returns).pow(2))
    else:
        value_rows = (batch.returns - values).pow(2)
    value_loss = batch.mean(value_rows)

    # Entropy bonus, with the coefficient of each row's agent
    if isinstance(entropy_coef, torch.Tensor):
        entropy_bonus = batch.mean(entropy_coef[batch.labels] * entropy)
    else:
        entropy_bonus = entropy_coef * batch.mean(entropy)
    total = surrogate_loss + value_coef * value_loss - entropy_bonus
    return Loss(total, surrogate_loss, value_loss, entropy.mean(), ratio, surrogate_rows)


def entropy_coefficients(base: float, scale: float, shares: torch.Tensor | None) -> float | torch.Tensor:
    """Return the entropy coefficients: one number, or a table by agent (release meaning).

    Args:
        base: The least coefficient.
        scale: Twice the difference between the largest and the least.
        shares: Place of every agent between the two, from 0 to 1; None if there is one agent.
    """
    return base if shares is None or scale == 0.0 else base + 0.5 * scale * shares
