"""ESAC's automatic mutation tuning: the mutation rate grows as long as the best member is ahead of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

FITNESS = ("normalised", "raw")
SCALE_DECAY = 0.9
"""Weight of the past in the running scale of the fitness."""


@dataclass(frozen=True)
class AmtCfg:
    """Settings of the mutation rate."""

    sigma: float
    """First mutation rate."""
    learning_rate: float
    """Step size alpha_es."""
    zeta: float
    """Largest step; 0 leaves sigma as it is."""
    fitness: str = "normalised"
    """``normalised``: fitness divided by its running scale; ``raw``: as the equation is printed. With returns of
    hundreds the clip then always binds and sigma grows by zeta, whatever the population does."""
    most: float = float("inf")
    """Largest mutation rate."""


class MutationRate:
    """The mutation rate of a population of n members."""

    def __init__(self, cfg: AmtCfg, num_members: int) -> None:
        """Begin with the first rate."""
        self._cfg, self._num_members = cfg, num_members
        self.sigma = cfg.sigma
        self._scale = 0.0

    def tell(self, fitness: torch.Tensor) -> float:
        """Take in the fitness of a generation and return the rate of the next."""
        if self._cfg.zeta == 0.0:
            return self.sigma
        # Running scale of the fitness: mean absolute value of the members', averaged over generations
        size = float(fitness.abs().mean())
        self._scale = size if self._scale == 0.0 else SCALE_DECAY * self._scale + (1.0 - SCALE_DECAY) * size
        scale = 1.0 if self._cfg.fitness == "raw" or self._scale == 0.0 else self._scale
        best, mean = float(fitness.max()) / scale, float(fitness.mean()) / scale
        step = amt_step(self.sigma, best, mean, self._cfg.learning_rate, self._num_members, self._cfg.zeta)
        self.sigma = min(self.sigma + step, max(self._cfg.most, self.sigma))
        return self.sigma

    def state_dict(self) -> dict[str, Any]:
        """Return rate and scale."""
        return {"sigma": self.sigma, "scale": self._scale}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.sigma, self._scale = state["sigma"], state["scale"]


def amt_step(sigma: float, best: float, mean: float, learning_rate: float, num_members: int, zeta: float) -> float:
    """Return clip(alpha_es / (n sigma) SmoothL1(R_max, R_avg), 0, zeta)  (ESAC eq. 6)."""
    return min(max(learning_rate / (num_members * sigma) * smooth_l1(best, mean), 0.0), zeta)


def smooth_l1(x: float, y: float) -> float:
    """Return (x - y)^2 / 2 below a distance of 1, else |x - y| - 1/2."""
    distance = abs(x - y)
    return 0.5 * distance**2 if distance < 1.0 else distance - 0.5
