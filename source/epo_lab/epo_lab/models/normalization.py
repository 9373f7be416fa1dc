"""Normalised observations that a single bad number does not spoil."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.modules import EmpiricalNormalization

LARGEST = 1e6
"""Largest absolute value of an observation that counts, as for the guard of the runner, which others do not have."""


class GuardedNormalization(EmpiricalNormalization):
    """rsl_rl's running mean and deviation, of numbers that are finite and not huge: others would stay in them."""

    @torch.jit.unused
    def update(self, x: torch.Tensor) -> None:
        """Learn from a batch; the mean stands in for what does not count."""
        super().update(torch.where(x.abs() <= LARGEST, x, self._mean))


class ClippedNormalization(GuardedNormalization):
    """A normalisation with the outcome clipped: what is rare does not blind the network."""

    def __init__(self, shape: Any, clip: float) -> None:
        """Create the module.

        Args:
            shape: Shape of an observation.
            clip: Largest absolute value of a normalised one.
        """
        super().__init__(shape)
        self.clip = clip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise and clip."""
        return ((x - self._mean) / (self._std + self.eps)).clamp(-self.clip, self.clip)


def make_normalization(shape: Any, clip: float | None) -> GuardedNormalization:
    """Return a normalisation, clipped if there is a bound."""
    return GuardedNormalization(shape) if clip is None else ClippedNormalization(shape, clip)
