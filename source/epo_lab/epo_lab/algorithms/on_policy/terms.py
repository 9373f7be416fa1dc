"""What an agent may learn from besides PPO's loss: each such term is one object in a list."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict

from epo_lab.algorithms.base import Part
from epo_lab.storage.batch import Batch

BOUND = 1.1
"""Action means beyond +- this are pulled back."""


class LossTerm:
    """A term of the loss. Every method may be left as it is: then it does nothing."""

    def reward(self, obs: TensorDict, actions: torch.Tensor) -> torch.Tensor | None:
        """Return an intrinsic reward of the step that was just taken. Shape is (N,)."""
        return None

    def prepare(self, last_obs: TensorDict, rewards: torch.Tensor) -> None:
        """Look at the whole roll-out, before advantages are normalised.

        Args:
            last_obs: Observations after the last step.
            rewards: The task's rewards, time-outs bootstrapped. Shape is (T, N, 1).
        """
        return

    def begin(self, num_mini_batches: int, num_epochs: int) -> None:
        """Begin an update of so many mini-batches."""
        return

    def adjust(self, batch: Batch, log_prob: torch.Tensor) -> None:
        """Change the advantages of a mini-batch, given the log-probabilities of its actions."""
        return

    def loss(self, batch: Batch, action_mean: torch.Tensor) -> torch.Tensor | None:
        """Return what is added to the loss of a mini-batch."""
        return None

    def broadcast(self) -> None:
        """Give all processes rank 0's parameters."""
        return

    def scalars(self) -> dict[str, torch.Tensor]:
        """Return what is logged of the last update, by tag."""
        return {}

    def parts(self) -> dict[str, Part]:
        """Return what a resumed run needs."""
        return {}


class Bounds(LossTerm):
    """Pulls action means back into the range in which they have an effect (rl_games' bounds loss)."""

    def __init__(self, coef: float) -> None:
        """Create the term.

        Args:
            coef: Weight of the squared excess over +-1.1.
        """
        self._coef = coef

    def loss(self, batch: Batch, action_mean: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean of the squared excess."""
        excess = (action_mean - BOUND).clamp(min=0.0) + (-BOUND - action_mean).clamp(min=0.0)
        return self._coef * batch.mean(excess.pow(2).sum(dim=-1))


def total_reward(terms: list[LossTerm], obs: TensorDict, actions: torch.Tensor) -> Any:
    """Return the sum of the terms' intrinsic rewards; None if no term has one."""
    rewards = [reward for term in terms if (reward := term.reward(obs, actions)) is not None]
    return sum(rewards[1:], rewards[0]) if rewards else None
