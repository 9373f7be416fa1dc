"""(b) A ring of basins, one of them the best: one Gaussian policy stays in the first it meets."""

from __future__ import annotations

import math

import torch

from .base import DiagnosticEnv

SPEED = 0.15
"""Distance of a step at full action."""
WIDTH = 0.8
"""Radius of a basin."""
DISTANCE = 2.7
"""Distance of all basins from the start."""
BASINS = (0.50, 0.30, 0.60, 0.40, 1.00, 0.30, 0.55, 0.35)
"""Reward at the centre of the basins, one every 45 degrees; one is the best."""
BEST = BASINS.index(max(BASINS))


class DeceptiveEnv(DiagnosticEnv):
    """A point on a plane is paid for where it is; from one basin to the next there is nothing to follow."""

    num_actions = 2
    horizon = 60

    def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        """Create the environments and walk the best way once."""
        angles = torch.arange(len(BASINS)) * 2.0 * math.pi / len(BASINS)
        self.centers = (DISTANCE * torch.stack([angles.cos(), angles.sin()], dim=-1)).to(device)
        self.heights = torch.tensor(BASINS, device=device)
        super().__init__(num_envs, device, seed)
        self.best_return = self._straight_walk(BEST)
        """Return of walking straight into the best basin."""

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return positions close to the origin."""
        return {"position": 0.1 * self.normal(self.num_envs, 2)}

    def observe(self) -> torch.Tensor:
        """Return position and time."""
        return torch.cat([0.5 * self.state["position"], self.time], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Move and pay."""
        self.state["position"] = self.state["position"] + SPEED * actions
        return self.pay(self.state["position"])

    def pay(self, position: torch.Tensor) -> torch.Tensor:
        """Return the reward of positions: that of the basin they are in, zero between them."""
        depth = (1.0 - (torch.cdist(position, self.centers) / WIDTH).square()).clamp(min=0.0)
        return (self.heights * depth).amax(dim=-1)

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the share of the best return."""
        return returns / self.best_return

    def _straight_walk(self, basin: int) -> float:
        position, total = torch.zeros(1, 2, device=self.device), 0.0
        for _ in range(self.horizon):
            way = (self.centers[basin] - position) / SPEED
            position = position + SPEED * way / way.abs().amax(dim=-1, keepdim=True).clamp(min=1.0)
            total += float(self.pay(position))
        return total
