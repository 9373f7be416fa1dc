"""Fitness of a generation in which everybody is new: the first whole episodes of every environment, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch

from epo_lab.base.options import SHARE, Whole

from .fitness import Fitness, FitnessOptions, FitnessTracker


@dataclass
class GenerationFitnessOptions(FitnessOptions):
    """What a member is judged by, and when a generation ends."""

    min_coverage: Annotated[float, SHARE] = 1.0
    """Share of every member's environments that must have played their episodes before a generation ends. Default 1;
    below it, short episodes count more often than long ones."""
    min_episodes: Whole = 1
    """First whole episodes of an environment by which its member is judged. Default 1."""


class FirstEpisodes(FitnessTracker):
    """Mean over the first ``min_episodes`` whole episodes of each environment since the generation began.

    Each environment counts equally often: members that fall early would otherwise be judged by more episodes, and those
    with a long one by none.
    """

    def step(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step of all environments, with raw rewards."""
        before, mean = self._episodes.clone(), self._last
        super().step(rewards, dones, extras)
        # Running mean of the episodes that count
        counts = (self._episodes > before) & (before < self.min_episodes)
        known = torch.where(before == 0, self._last, mean)
        blended = known + (self._last - known) / (before + 1)
        self._last = torch.where(counts, blended, mean)

    def complete(self) -> Fitness | None:
        """Return the fitness of all members, if each has played its episodes."""
        fitness = self.compute()
        return fitness if bool(fitness.evaluated.all()) else None

    def begin(self, fresh: torch.Tensor) -> None:
        """Begin a generation.

        Args:
            fresh: Environments whose next episode has not begun yet, so that it counts already. Shape is (num_envs,).
        """
        self._episodes.zero_()
        self._tainted.copy_(~fresh)
