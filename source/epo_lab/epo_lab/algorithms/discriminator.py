"""CPO's adversarial reward: a network tells the agents by what they do, and followers are paid for being told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from rsl_rl.modules import MLP
from torch import nn
from torch.nn import functional

from .joint import world_size


class Discriminator(nn.Module):
    """Tells which agent acted, from normalised observations and actions."""

    def __init__(
        self, num_inputs: int, num_agents: int, hidden_dims: Sequence[int], learning_rate: float, device: str
    ) -> None:
        """Create the network and its optimizer.

        Args:
            num_inputs: Size of an observation and an action.
            num_agents: Number of agents.
            hidden_dims: Sizes of the hidden layers.
            learning_rate: Learning rate, which stays what it is.
            device: Where it lives.
        """
        super().__init__()
        self.net = MLP(num_inputs, num_agents, list(hidden_dims), "elu").to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=learning_rate)

    @torch.no_grad()
    def log_prob(self, obs: torch.Tensor, actions: torch.Tensor, agents: torch.Tensor) -> torch.Tensor:
        """Return how surely each row is known to be its agent's. Shape is (rows,)."""
        scores = functional.log_softmax(self.net(torch.cat([obs, actions], dim=-1)), dim=-1)
        return scores.gather(1, agents.unsqueeze(1)).squeeze(1)

    def learn(
        self, obs: torch.Tensor, actions: torch.Tensor, agents: torch.Tensor, num_mini_batches: int
    ) -> torch.Tensor:
        """Pass once over a roll-out and return the mean loss; ln K is chance."""
        inputs = torch.cat([obs, actions], dim=-1)
        size = len(inputs) // num_mini_batches
        total = inputs.new_zeros(())
        for rows in torch.randperm(num_mini_batches * size, device=inputs.device).split(size):
            loss = functional.cross_entropy(self.net(inputs[rows]), agents[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self._join_gradients()
            self.optimizer.step()
            total += loss.detach()
        return total / num_mini_batches

    def _join_gradients(self) -> None:
        if world_size() > 1:
            for parameter in self.net.parameters():
                torch.distributed.all_reduce(parameter.grad)
                parameter.grad /= world_size()

    def save(self) -> dict[str, Any]:
        """Return what belongs to a checkpoint."""
        return {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`save` returned."""
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
