"""Which of many genes would do what nobody does: they are compared before they act in any environment."""

from __future__ import annotations

import torch


def policy_distance(first: torch.Tensor, second: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Return the squared Hellinger distance of every two policies, mean over the states. Shape is (n, m).

    For Gaussians with the same deviation it is 1 - exp(-|a - b|^2 / (8 sigma^2)): bounded, so that a policy does not
    count as new because it is extreme in a few states.

    Args:
        first: Action means in the same states. Shape is (n, S, A).
        second: Action means of others. Shape is (m, S, A).
        std: Standard deviation of the actions. Shape is (A,).
    """
    # states first, so that all pairs are one batched product of matrices
    a, b = ((means / std).transpose(0, 1) for means in (first, second))
    square = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
    return (1.0 - torch.exp(-square / 8.0)).mean(dim=0)


def most_novel(agents: torch.Tensor, candidates: torch.Tensor, std: torch.Tensor, count: int) -> list[int]:
    """Return the candidates that differ most from all agents and from those chosen before.

    Args:
        agents: Action means of all agents in the same states. Shape is (K, S, A).
        candidates: Action means of the candidates. Shape is (C, S, A).
        std: Standard deviation of the actions. Shape is (A,).
        count: How many to choose.
    """
    distance = policy_distance(candidates, agents, std).amin(dim=1)
    chosen: list[int] = []
    for _ in range(count):
        best = int(distance.argmax())
        chosen.append(best)
        distance = torch.minimum(distance, policy_distance(candidates, candidates[best : best + 1], std)[:, 0])
    return chosen
