"""Fitness of a generation in which everybody is new: the first whole episodes of every environment, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

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

    def _latch(self, whole: torch.Tensor, values: torch.Tensor, times: torch.Tensor | None) -> None:
        """Keep the mean of every environment's first whole episodes, and how many there were."""
        number = self._episodes + whole.cumsum(dim=0)
        counts = whole & (number <= self.min_episodes)
        before, after = self._episodes.clamp(max=self.min_episodes), number[-1].clamp(max=self.min_episodes)
        # Running means of the episodes that count
        for kept, new in ((self._last, values), (self._time, times)):
            if new is not None:
                total = before * kept + torch.where(counts, new, 0.0).sum(dim=0)
                kept.copy_(torch.where(after > before, total / after.clamp(min=1), kept))
        self._episodes.copy_(number[-1])

    def complete(self) -> Fitness | None:
        """Return the fitness of all members, if each has played its episodes."""
        fitness = self.compute()
        return fitness if bool(fitness.evaluated.all()) else None

    def begin(self, fresh: torch.Tensor) -> None:
        """Begin a generation.

        Args:
            fresh: Environments whose next episode has not begun yet, so that it counts already. Shape is (num_envs,).
        """
        self._work_out()
        self._episodes.zero_()
        self._notes.tainted.copy_(~fresh)
