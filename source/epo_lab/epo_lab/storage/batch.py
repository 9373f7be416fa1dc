"""A mini-batch, of one agent or of a population."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict


class Batch(RolloutStorage.Batch):
    """rsl_rl's mini-batch, with the agents of its rows and what each row counts."""

    observations: TensorDict
    actions: torch.Tensor
    values: torch.Tensor
    returns: torch.Tensor
    advantages: torch.Tensor
    old_actions_log_prob: torch.Tensor
    old_distribution_params: tuple[torch.Tensor, ...]
    labels: Any
    relabelled: Any

    def __init__(
        self,
        *,
        labels: torch.Tensor | None = None,
        relabelled: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        importance: torch.Tensor | None = None,
        **fields: Any,
    ) -> None:
        """Create the batch.

        Args:
            labels: Agent under which each row is evaluated. Defaults to None: there is one.
            relabelled: Whether a row is another agent's data. Defaults to None: none is.
            weights: What each row counts in a mean. Defaults to None: all the same.
            importance: Importance weight of each row's advantage. Defaults to None: all 1.
            fields: Fields of rsl_rl's batch.
        """
        super().__init__(**fields)
        self.labels = labels
        self.relabelled = relabelled
        self.weights = weights
        self.importance = importance

    def mean(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the mean over the rows, each counted with its weight."""
        return rows.mean() if self.weights is None else (self.weights.view_as(rows) * rows).mean()
