"""(c) A ring of stations that pays only for a whole round: sparse, with a long horizon."""

from __future__ import annotations

import math

import torch

from .base import DiagnosticEnv

STATIONS = 8
TURN = 137.508
"""Angle between the right directions of two stations [degrees]; the golden angle repeats none."""
ENOUGH = 0.6
"""How far an action must point in the right direction to go on."""


class CycleEnv(DiagnosticEnv):
    """At every station one direction leads on; the opposite half leads back to the beginning, the rest nowhere."""

    num_actions = 2
    horizon = 64

    def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        """Create the environments."""
        angles = torch.arange(STATIONS) * math.radians(TURN)
        self.directions = torch.stack([angles.cos(), angles.sin()], dim=-1).to(device)
        super().__init__(num_envs, device, seed)

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return the first station for everybody."""
        return {"station": torch.zeros(self.num_envs, dtype=torch.long, device=self.device)}

    def observe(self) -> torch.Tensor:
        """Return the station as a one-hot vector, and the time."""
        station = torch.nn.functional.one_hot(self.state["station"], STATIONS).float()
        return torch.cat([station, self.time], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Go on, stay or fall back; a finished round pays 1."""
        station = self.state["station"]
        along = (actions * self.directions[station]).sum(dim=-1)
        on = torch.where(along > ENOUGH, station + 1, torch.where(along < 0.0, 0, station))
        finished = on == STATIONS
        self.state["station"] = torch.where(finished, 0, on)
        return finished.float()

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the share of the rounds that can be made."""
        return returns / (self.horizon // STATIONS)
