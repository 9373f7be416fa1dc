"""How far the policies of a population are from each other."""

from __future__ import annotations

import torch


def pairwise_kl(mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Return KL(i || j) between Gaussian policies with independent actions, mean over states. Shape is (K, K).

    With a state's and action's index m the sum over m of (std_i^2 + (mean_i - mean_j)^2) / std_j^2 is expanded, so that
    two matrix products do instead of a tensor of all pairs and states.

    Args:
        mean: Action means of every agent in every state. Shape is (K, M, A).
        std: Standard deviations. Shape is (K, M, A).
    """
    states, actions = mean.shape[1:]
    mean, std = mean.double().flatten(1), std.double().flatten(1)
    # means common to all agents cancel; without them the expansion loses no digits to them
    mean = mean - mean.mean(dim=0)
    # sum_m (std_i^2 + mean_i^2) / std_j^2 - 2 mean_i mean_j / std_j^2 + mean_j^2 / std_j^2
    weight = std.square().reciprocal()
    squares = (std.square() + mean.square()) @ weight.T - 2.0 * mean @ (weight * mean).T
    squares = squares + (weight * mean.square()).sum(dim=1)
    # KL(i || j) = sum_m log(std_j / std_i) + ((std_i^2 + (mean_i - mean_j)^2) / std_j^2 - 1) / 2
    logs = std.log().sum(dim=1)
    total = logs - logs.unsqueeze(1) + 0.5 * (squares - states * actions)
    return (total / states).clamp(min=0.0).fill_diagonal_(0.0)


def nearest_is_master(divergence: torch.Tensor) -> float:
    """Return the share of the followers whose nearest policy, as KL(follower || other) says, is the master's."""
    others = divergence[1:].clone()
    followers = torch.arange(len(others))
    others[followers, followers + 1] = float("inf")
    return float((others.argmin(dim=1) == 0).double().mean())


def cosine(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    """Return the cosine of the angle between two gradients, each given parameter by parameter; 0 if one vanishes."""
    one, two = (torch.cat([part.double().flatten() for part in gradient]) for gradient in (first, second))
    norms = one.norm() * two.norm()
    return float(one @ two / norms) if norms > 0 else 0.0
