"""Targets and losses of off-policy learning, as functions of numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "min": lambda values: values.amin(dim=0),
    "mean": lambda values: values.mean(dim=0),
    "first": lambda values: values[0],
}
"""What becomes of the values of several Q functions, shape (2, B) to (B,)."""


def td_target(
    rewards: torch.Tensor, discounts: torch.Tensor, next_values: torch.Tensor, entropy_bonus: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """Return the targets of scalar Q functions: r + gamma^m (min_i Q_i(s', a') + entropy bonus).

    Args:
        rewards: Sums of m rewards. Shape is (B,).
        discounts: gamma^m, or 0 after a termination. Shape is (B,).
        next_values: Values of both target functions. Shape is (2, B).
        entropy_bonus: -alpha log pi(a' | s') of SAC. Defaults to 0.
    """
    # Clipped double Q (TD3 eq. 10; SAC section 5)
    return rewards + discounts * (next_values.amin(dim=0) + entropy_bonus)


def distribution_target(
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    next_logits: torch.Tensor,
    atoms: torch.Tensor,
    entropy_bonus: torch.Tensor | float = 0.0,
) -> torch.Tensor:
    """Return the targets of distributional Q functions, projected onto the atoms. Shape is (B, n).

    Args:
        rewards: Sums of m rewards. Shape is (B,).
        discounts: gamma^m, or 0 after a termination. Shape is (B,).
        next_logits: Logits of both target functions. Shape is (2, B, n).
        atoms: Values of the atoms, evenly spaced. Shape is (n,).
        entropy_bonus: -alpha log pi(a' | s') of SAC. Defaults to 0.
    """
    # Clipped double Q of distributions: the one with the smaller mean
    probabilities = next_logits.softmax(dim=-1)
    means = (probabilities * atoms).sum(dim=-1)
    chosen = torch.where((means[0] <= means[1]).unsqueeze(-1), probabilities[0], probabilities[1])
    shift = rewards + discounts * entropy_bonus
    return project(shift.unsqueeze(-1) + discounts.unsqueeze(-1) * atoms, chosen, atoms)


def project(values: torch.Tensor, probabilities: torch.Tensor, atoms: torch.Tensor) -> torch.Tensor:
    """Return a distribution on evenly spaced atoms that has the mass of another one (C51, algorithm 1).

    Args:
        values: Where the masses lie. Shape is (B, n).
        probabilities: The masses. Shape is (B, n).
        atoms: Values of the atoms. Shape is (n,).
    """
    number = len(atoms)
    # Position in atoms; what lies outside of the support goes to its ends
    position = (values - atoms[0]) * ((number - 1) / (atoms[-1] - atoms[0]))
    position = position.clamp(0.0, number - 1.0)
    # Note: the lower neighbour takes 1 - (position - lower), so that a mass on an atom goes there once and whole
    lower = position.floor().clamp(max=number - 2.0)
    upper_share = position - lower
    index = lower.long()
    projected = torch.zeros_like(probabilities)
    projected.scatter_add_(1, index, probabilities * (1.0 - upper_share))
    return projected.scatter_add_(1, index + 1, probabilities * upper_share)


def squared_loss(values: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return half the squared error, the sum of both functions' means.

    Args:
        values: Values of both functions. Shape is (2, B).
        targets: Targets. Shape is (B,).
        weights: What each row counts. Shape is (B,).
    """
    return 0.5 * (weights * (values - targets).square()).mean(dim=-1).sum()


def cross_entropy_loss(logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy to target distributions, the sum of both functions' means.

    Args:
        logits: Logits of both functions. Shape is (2, B, n).
        targets: Target distributions. Shape is (B, n).
        weights: What each row counts. Shape is (B,).
    """
    # -sum_k p_k log q_k over the atoms
    rows = -(targets * functional.log_softmax(logits, dim=-1)).sum(dim=-1)
    return (weights * rows).mean(dim=-1).sum()


def policy_loss(values: torch.Tensor, weights: torch.Tensor, entropy_cost: torch.Tensor | float = 0.0) -> torch.Tensor:
    """Return the loss of a policy, alpha log pi(a | s) - Q(s, a); without entropy it is TD3's.

    Args:
        values: Values of the policy's actions, shape (B,); or of several policies, shape (P, B), whose losses add up.
        weights: What each row counts. Shape is (B,).
        entropy_cost: alpha log pi(a | s). Defaults to 0.
    """
    return (weights * (entropy_cost - values)).mean(dim=-1).sum()


def temperature_loss(
    log_temperature: torch.Tensor, log_probs: torch.Tensor, target_entropy: float, weights: torch.Tensor
) -> torch.Tensor:
    """Return the loss of the temperature, -log alpha (log pi + target entropy) (SAC eq. 18, in log alpha).

    Args:
        log_temperature: log alpha.
        log_probs: log pi(a | s). Shape is (B,).
        target_entropy: Entropy to keep.
        weights: What each row counts. Shape is (B,).
    """
    return -log_temperature * (weights * (log_probs.detach() + target_entropy)).mean()
