"""How diverse visited states are: how badly a few principal components describe them."""

from __future__ import annotations

import torch


def pca_reconstruction_error(states: torch.Tensor, reference: torch.Tensor | None = None) -> torch.Tensor:
    """Return the share of the variance that the first k components miss, for k = 0 ... D. Higher is more diverse.

    Args:
        states: Visited states. Shape is (n, D).
        reference: States whose mean and standard deviation standardise every dimension: the union of the methods that
            are compared. Defaults to None (the states themselves).
    """
    reference = states if reference is None else reference
    mean, std = reference.double().mean(dim=0), reference.double().std(dim=0)
    standard = (states.double() - mean) / torch.where(std > 0, std, 1.0)
    standard = standard - standard.mean(dim=0)
    variances = torch.linalg.svdvals(standard).square()
    dims = states.shape[1]
    padded = torch.zeros(dims, dtype=torch.float64)
    padded[: len(variances)] = variances
    explained = torch.cat([torch.zeros(1, dtype=torch.float64), padded.cumsum(0)]) / padded.sum().clamp(min=1e-300)
    return (1.0 - explained).clamp(min=0.0)
