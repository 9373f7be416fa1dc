"""What an agent may learn from besides PPO's loss: each such term is one object in a list."""

from __future__ import annotations

import torch
from tensordict import TensorDict

from epo_lab.algorithms.base import Part
from epo_lab.storage.batch import Batch

BOUND = 1.1
"""Action means beyond +- this are pulled back."""


class LossTerm:
    """A term of the loss. Every method may be left as it is: then it does nothing."""

    def reward(self) -> torch.Tensor | None:
        """Return an intrinsic reward of every step of the roll-out. Shape is (T, N, 1)."""
        return None

    def prepare(self, last_obs: TensorDict, rewards: torch.Tensor) -> torch.Tensor | None:
        """Look at the whole roll-out, before advantages are normalised; return those of the term's own rows, if any.

        Args:
            last_obs: Observations after the last step.
            rewards: The task's rewards, time-outs bootstrapped. Shape is (T, N, 1).
        """
        return None

    def normalize(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        """Normalise the advantages that were returned, with what all advantages of the roll-out together gave."""
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

    def follow(self, kl_to_master: float) -> None:
        """Adapt to how far the followers' policies are from the master's, after an update."""
        return

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


def with_intrinsic(rewards: torch.Tensor, terms: list[LossTerm]) -> torch.Tensor:
    """Return the rewards of a roll-out and the terms' intrinsic ones together. Shape is (T, N, 1)."""
    for term in terms:
        more = term.reward()
        if more is not None:
            rewards = rewards + more
    return rewards
