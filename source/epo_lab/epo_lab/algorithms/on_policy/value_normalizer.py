"""Running mean and variance of returns, so that the critic can predict numbers of order one."""

from __future__ import annotations

import torch
from torch import nn

from epo_lab.base.processes import sum_over_processes

CLAMP = 5.0
EPSILON = 1e-5


class ValueNormalizer(nn.Module):
    """Statistics of everything it has seen, in float64, joined over the processes."""

    mean: torch.Tensor
    var: torch.Tensor
    count: torch.Tensor

    def __init__(self, device: str | torch.device = "cpu") -> None:
        """Start with mean 0 and variance 1."""
        super().__init__()
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64, device=device))
        self.register_buffer("var", torch.ones((), dtype=torch.float64, device=device))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64, device=device))

    @torch.no_grad()
    def update(self, values: torch.Tensor) -> None:
        """Take in a batch; the mean stands in for what is not finite, which would never leave it."""
        values = torch.where(values.isfinite(), values.double(), self.mean)
        # Moments of the batch, of all processes together
        sums = torch.stack([values.new_tensor(values.numel()), values.sum(), values.square().sum()])
        sums = sum_over_processes(sums)
        count, mean = sums[0], sums[1] / sums[0]
        var = (sums[2] / count - mean.square()).clamp(min=0.0)
        # Joined with those so far (Chan's parallel variance): n = n1 + n2, M2 = M2_1 + M2_2 + d^2 n1 n2 / n
        total = self.count + count
        delta = mean - self.mean
        spread = self.var * self.count + var * count + delta.square() * self.count * count / total
        self.mean += delta * count / total
        self.var.copy_(spread / total)
        self.count.copy_(total)

    def normalize(self, values: torch.Tensor) -> torch.Tensor:
        """Return values as the critic predicts them, within +-5."""
        return ((values - self.mean.float()) / self.scale()).clamp(-CLAMP, CLAMP)

    def denormalize(self, values: torch.Tensor) -> torch.Tensor:
        """Return what a prediction means."""
        return values.clamp(-CLAMP, CLAMP) * self.scale() + self.mean.float()

    def scale(self) -> torch.Tensor:
        """Return the standard deviation."""
        return (self.var + EPSILON).sqrt().float()


def denormalized(values: torch.Tensor, normalizer: ValueNormalizer | None) -> torch.Tensor:
    """Return values in units of the return."""
    return values if normalizer is None else normalizer.denormalize(values)
