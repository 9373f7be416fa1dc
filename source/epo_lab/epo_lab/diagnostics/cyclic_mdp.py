"""(e) ESAC's cyclic MDP: three states in a circle, and every wrong turn ends the episode."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict

from .base import DiagnosticEnv

STATES = 3
CLOCKWISE = 1
"""Action that leads on in every state; the two others end the episode."""


class CyclicMdpEnv(DiagnosticEnv):
    """Clockwise pays 1; any other turn costs 1 and ends the episode, which otherwise goes on for 2,000 steps.

    The action is the largest of three outputs. The end of the time is a time-out, since nothing shows it coming.
    """

    num_actions = 3
    horizon = 2000

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return the first state for everybody, upright."""
        place = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        return {"place": place, "fallen": torch.zeros_like(place, dtype=torch.bool)}

    def observe(self) -> torch.Tensor:
        """Return the state as a one-hot vector."""
        return one_hot(self.state["place"])

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Go on, or fall."""
        right = actions.argmax(dim=-1) == CLOCKWISE
        self.state["place"] = torch.where(right, (self.state["place"] + 1) % STATES, self.state["place"])
        self.state["fallen"] = ~right
        return torch.where(right, 1.0, -1.0)

    def ended(self) -> torch.Tensor:
        """Return whether an episode ends with this step: by a wrong turn, or by time."""
        return super().ended() | self.state["fallen"]

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions; says which episodes ran out of time."""
        # Note: chosen here, because outputs that are clipped to 1 would tie
        obs, rewards, dones, extras = super().step(one_hot(actions.argmax(dim=-1)))
        extras["time_outs"] = dones.bool() & (rewards > 0.0)
        return obs, rewards, dones, extras

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the share of the best return."""
        return returns / self.horizon


def one_hot(numbers: torch.Tensor) -> torch.Tensor:
    """Return states or actions as one-hot vectors. Shape is (num_envs, 3)."""
    return torch.nn.functional.one_hot(numbers, STATES).float()
