"""Normalised observations that stay within bounds."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.modules import EmpiricalNormalization


class ClippedNormalization(EmpiricalNormalization):
    """rsl_rl's running mean and deviation, with the outcome clipped: what is rare does not blind the network."""

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
