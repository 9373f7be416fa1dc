"""CPO's adversarial reward: a network tells the agents by what they do, and followers are paid for being told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import MLP
from torch.nn import functional

from .joint import world_size

if TYPE_CHECKING:
    from .epo import EPO


class Discriminator:
    """Tells which agent acted, from normalised observations and actions."""

    def __init__(self, alg: EPO) -> None:
        """Create the network and its optimizer, whose learning rate stays what the policies begin with.

        Args:
            alg: The algorithm; it has more than one agent.
        """
        self._alg, st = alg, alg.storage
        st.bonus = torch.zeros_like(st.rewards)
        size, hidden = alg.actor.obs_dim + st.actions.shape[-1], list(alg.options.discriminator_hidden_dims)
        self.net = MLP(size, alg.num_agents, hidden, "elu").to(alg.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=alg.learning_rate)

    def pay(self) -> torch.Tensor:
        """Return what followers get for the step that was just taken, and note it in the storage. Shape is (N,)."""
        alg = self._alg
        inputs = self._inputs(alg.transition.observations, alg.transition.actions)
        bonus = torch.where(alg.agent_ids > 0, alg.options.adversarial_coef * self.known(inputs, alg.agent_ids), 0.0)
        alg.storage.bonus[alg.storage.step] = bonus.unsqueeze(-1)
        return bonus

    def learn(self) -> torch.Tensor:
        """Pass once over the roll-out and return the mean loss; ln K is chance."""
        alg, st = self._alg, self._alg.storage
        inputs = self._inputs(st.observations.flatten(0, 1), st.actions.flatten(0, 1))
        return self.fit(inputs, alg.agent_ids.repeat(st.num_transitions_per_env), alg.num_mini_batches)

    @torch.no_grad()
    def known(self, inputs: torch.Tensor, agents: torch.Tensor) -> torch.Tensor:
        """Return the log-probability with which each row is known to be its agent's. Shape is (rows,)."""
        scores = functional.log_softmax(self.net(inputs), dim=-1)
        return scores.gather(1, agents.unsqueeze(1)).squeeze(1)

    def fit(self, inputs: torch.Tensor, agents: torch.Tensor, num_mini_batches: int) -> torch.Tensor:
        """Learn to tell the agents of some rows; return the mean loss."""
        size = len(inputs) // num_mini_batches
        total = inputs.new_zeros(())
        for rows in torch.randperm(num_mini_batches * size, device=inputs.device).split(size):
            loss = functional.cross_entropy(self.net(inputs[rows]), agents[rows])
            self.optimizer.zero_grad()
            loss.backward()
            if world_size() > 1:
                for parameter in self.net.parameters():
                    torch.distributed.all_reduce(parameter.grad)
                    parameter.grad /= world_size()
            self.optimizer.step()
            total += loss.detach()
        return total / num_mini_batches

    def broadcast(self) -> None:
        """Give all processes rank 0's network."""
        for parameter in self.net.parameters():
            torch.distributed.broadcast(parameter.data, src=0)

    def state_dict(self) -> dict[str, Any]:
        """Return what belongs to a checkpoint."""
        return {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _inputs(self, obs: Any, actions: torch.Tensor) -> torch.Tensor:
        return torch.cat([MLPModel.get_latent(self._alg._raw_actor, obs).detach(), actions], dim=-1)
