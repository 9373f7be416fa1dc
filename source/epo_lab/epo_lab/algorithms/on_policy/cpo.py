"""CPO: followers that stay near the master, as three terms of the loss.

    loss = PPO's + beta * sum over followers i of E[-w_i log pi_i(u|s)],   w_i = min(exp(A_i / lambda), 100)

over the master's own steps (s, u). A_i is the one-step advantage of a step under the follower's critic, normalised
together with PPO's advantages, so that every follower is drawn to what it thinks well of itself (:class:`Attraction`).
All rows, PPO's and these, count alike, as in the release: next to the mean of PPO's loss the term weighs its rows
over PPO's, beta (K - 1) / (K + 1) with one relabelled block. Followers may also be held near the master by a divergence
in their advantages (:class:`Reverse`), and paid for being told apart (:class:`Discriminator`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import MLP
from tensordict import TensorDict
from torch.nn import functional

from epo_lab.algorithms.base import Part
from epo_lab.base.keys import AGENT_ID
from epo_lab.base.processes import first_process_decides, mean_over_processes
from epo_lab.storage.batch import Batch
from epo_lab.storage.rollout import Columns, PopulationStorage

from .relabel import Values
from .terms import LossTerm

MOST_FOLLOWERS = 7
"""Up to so many followers learn from all of the master's columns; of more each takes a share of them."""
LARGEST_WEIGHT = 100.0
STEP_OF_FACTOR, LARGEST_FACTOR = 1.5, 1000.0
"""How fast and how far the weight of the attraction adapts."""
STEPS_AT_ONCE = 4
"""Steps of a roll-out that the classifier looks at in one pass: about as many rows as a mini-batch has."""


class Attraction(LossTerm):
    """The followers' loss on the master's data."""

    def __init__(
        self,
        actor: Any,
        storage: PopulationStorage,
        agent_ids: torch.Tensor,
        num_agents: int,
        value_as: Callable[[torch.Tensor, torch.Tensor, TensorDict, torch.Tensor], Values],
        generator: torch.Generator,
        *,
        beta: float,
        temperature: float,
        band: tuple[float, float] | None = None,
    ) -> None:
        """Allocate everything once.

        Args:
            actor: The actor, not compiled.
            storage: The roll-out.
            agent_ids: Agent of every column, on the CPU; the tensor is kept, so that a change of it is seen.
            num_agents: Number of agents, more than one.
            value_as: Evaluates columns under labels, given observations after the last step and rewards.
            generator: Generator of the draws.
            beta: Weight of the term.
            temperature: Temperature lambda of the weights.
            band: Divergences between which the weight adapts. Defaults to None: it stays as it is.
        """
        self._actor, self._storage, self._ids, self._value_as = actor, storage, agent_ids, value_as
        self._band, self._factor = band, 1.0
        self._followers, self._generator = num_agents - 1, generator
        masters = int((agent_ids == 0).sum())
        self._coef, self._temperature = beta * self._followers * masters / storage.width, temperature
        self._share = masters if self._followers <= MOST_FOLLOWERS else max(1, masters // self._followers)
        device = storage.device
        labels = torch.arange(1, self._followers + 1, device=device).repeat_interleave(self._share)
        weights = torch.zeros(storage.num_transitions_per_env, len(labels), 1, device=device)
        # A batch keeps values of a step under PPO's names: the weights stand where its advantages do
        self._columns = Columns(torch.zeros_like(labels), labels, {"advantages": weights})
        self._sums = torch.zeros(4, device=device)
        self._batches: Iterator[Batch] = iter(())

    def prepare(self, last_obs: TensorDict, rewards: torch.Tensor) -> torch.Tensor:
        """Return the one-step advantages of the master's steps under every follower's critic."""
        masters = (self._ids == 0).nonzero().flatten()
        if self._share < len(masters):
            draws = [torch.randperm(len(masters), generator=self._generator) for _ in range(self._followers)]
            source = torch.cat([masters[draw[: self._share]] for draw in draws])
        else:
            source = masters.repeat(self._followers)
        self._columns.source.copy_(source, non_blocking=True)

        worth = self._value_as(self._columns.source, self._columns.labels, last_obs, rewards)
        return torch.sub(worth.targets, worth.values, out=self._columns.fields["advantages"])

    def normalize(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        """Turn advantages into weights, exp(A / lambda) of the normalised ones."""
        advantages = self._columns.fields["advantages"]
        advantages.sub_(mean).div_(std + 1e-8).div_(self._temperature).exp_().clamp_(max=LARGEST_WEIGHT)

    def begin(self, num_mini_batches: int, num_epochs: int) -> None:
        """Draw a mini-batch for each of PPO's; fewer if there are not as many columns."""
        self._sums.zero_()
        number = min(num_mini_batches, len(self._columns.labels))
        make = self._storage.column_batches if self._actor.is_recurrent else self._storage.row_batches
        self._batches = make(self._columns, number, num_epochs)

    def loss(self, batch: Batch, action_mean: torch.Tensor) -> torch.Tensor | None:
        """Return the followers' mean loss, weighted; each has equally many rows."""
        drawn = next(self._batches, None)
        if drawn is None:
            return None
        distribution = self._actor.distribution
        # Note: what is logged of the action noise is PPO's batch
        kept = distribution._distribution
        self._actor(drawn.observations, masks=drawn.masks, hidden_state=drawn.hidden_states[0], stochastic_output=True)
        log_prob = self._actor.get_output_log_prob(drawn.actions)
        distribution._distribution = kept
        # Attraction: E[-w_i log pi_i(u | s)] over the master's steps
        weights = drawn.advantages.squeeze(-1)
        mean = -(weights * log_prob).mean()
        clamped = (weights >= LARGEST_WEIGHT).float().mean()
        self._sums += torch.stack([torch.ones_like(mean), mean.detach(), weights.mean(), clamped])
        return self._factor * self._coef * mean

    def follow(self, kl_to_master: float) -> None:
        """Draw followers that are too far away nearer, and let those that are too near go."""
        if self._band is None:
            return
        kl = float(mean_over_processes(torch.tensor(kl_to_master, device=self._sums.device)))
        low, high = self._band
        if kl > high:
            self._factor = min(self._factor * STEP_OF_FACTOR, LARGEST_FACTOR)
        elif kl < low:
            self._factor = max(self._factor / STEP_OF_FACTOR, 1.0 / LARGEST_FACTOR)

    def state_dict(self) -> dict[str, float]:
        """Return how the weight has adapted."""
        return {"factor": self._factor}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._factor = state["factor"]

    def parts(self) -> dict[str, Part]:
        """Return the weight, if it adapts."""
        return {} if self._band is None else {"attraction": Part(self)}

    def scalars(self) -> dict[str, torch.Tensor]:
        """Return the mean loss and the mean weight of the last update, and how many weights were clamped."""
        count, loss, weight, clamped = self._sums
        adapted = {} if self._band is None else {"Population/attraction_factor": torch.tensor(self._factor)}
        return adapted | {
            "Population/attraction_loss": loss / count,
            "Population/attraction_weight": weight / count,
            "Population/attraction_clamped": clamped / count,
        }


class Reverse(LossTerm):
    """Takes a share of log(follower / master) off the advantages of the followers' own rows."""

    def __init__(self, actor: Any, coef: float) -> None:
        """Create the term.

        Args:
            actor: The actor, not compiled.
            coef: The share.
        """
        self._actor, self._coef = actor, coef

    def adjust(self, batch: Batch, log_prob: torch.Tensor) -> None:
        """Change the followers' advantages."""
        own = (batch.labels > 0) & ~batch.relabelled
        change = self._coef * (log_prob.detach() - self._masters_log_prob(batch))
        batch.advantages = batch.advantages - torch.where(own, change, 0.0).unsqueeze(-1)

    @torch.no_grad()
    def _masters_log_prob(self, batch: Batch) -> torch.Tensor:
        """Return the log-probability that the master gives to all actions of a batch."""
        obs = batch.observations.clone(recurse=False)
        obs[AGENT_ID] = torch.zeros_like(obs[AGENT_ID])
        distribution = self._actor.distribution
        kept, kept_ids = distribution._distribution, getattr(distribution, "agent_ids", None)
        self._actor(obs, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True)
        log_prob = self._actor.get_output_log_prob(batch.actions)
        distribution._distribution, distribution.agent_ids = kept, kept_ids
        return log_prob


class Discriminator(LossTerm):
    """A classifier that tells agents by what they do, and an intrinsic reward of followers for being told."""

    def __init__(
        self,
        actor: Any,
        storage: PopulationStorage,
        agent_ids: torch.Tensor,
        num_agents: int,
        *,
        coef: float,
        hidden_dims: list[int],
        learning_rate: float,
    ) -> None:
        """Create the network and its optimizer.

        Args:
            actor: The actor, not compiled; its normalised observations are the input.
            storage: The roll-out.
            agent_ids: Agent of every environment, on the device.
            num_agents: Number of agents, more than one.
            coef: Weight of the reward.
            hidden_dims: Hidden layers.
            learning_rate: Learning rate, which stays what it is.
        """
        self._actor, self._storage, self._ids, self._coef = actor, storage, agent_ids, coef
        self._loss = self._reward = torch.zeros((), device=storage.device)
        self.net = MLP(actor.obs_dim + storage.actions.shape[-1], num_agents, hidden_dims, "elu").to(storage.device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=learning_rate)

    def reward(self) -> torch.Tensor:
        """Return what followers get for every step of the roll-out. Shape is (T, N, 1)."""
        st = self._storage
        known = [
            self.known(self._inputs(obs.flatten(0, 1), actions.flatten(0, 1)), self._ids.repeat(len(actions)))
            for obs, actions in zip(st.observations.split(STEPS_AT_ONCE), st.actions.split(STEPS_AT_ONCE), strict=True)
        ]
        # Intrinsic reward: coef * log q(agent | s, u)
        paid = self._coef * torch.cat(known).view(*st.rewards.shape[:2])
        rewards = torch.where(self._ids > 0, paid, 0.0)
        self._reward = rewards.sum() / (len(rewards) * (self._ids > 0).sum())
        return rewards.unsqueeze(-1)

    def begin(self, num_mini_batches: int, num_epochs: int) -> None:
        """Pass once over the roll-out, to tell the agents better next time."""
        st = self._storage
        inputs = self._inputs(st.observations.flatten(0, 1), st.actions.flatten(0, 1))
        self._loss = self.fit(inputs, self._ids.repeat(st.num_transitions_per_env), num_mini_batches)

    @torch.no_grad()
    def known(self, inputs: torch.Tensor, agents: torch.Tensor) -> torch.Tensor:
        """Return the log-probability with which each row is known to be its agent's. Shape is (rows,)."""
        # log q(agent | s, u)
        scores = functional.log_softmax(self.net(inputs), dim=-1)
        return scores.gather(1, agents.unsqueeze(1)).squeeze(1)

    def fit(self, inputs: torch.Tensor, agents: torch.Tensor, num_mini_batches: int) -> torch.Tensor:
        """Learn to tell the agents of some rows; return the mean loss. ln K is chance."""
        size = len(inputs) // num_mini_batches
        total = inputs.new_zeros(())
        for rows in torch.randperm(num_mini_batches * size, device=inputs.device).split(size):
            loss = functional.cross_entropy(self.net(inputs[rows]), agents[rows])
            self.optimizer.zero_grad()
            loss.backward()
            for parameter in self.net.parameters():
                if parameter.grad is not None:
                    # Note: one gradient that is not finite would stay in the network and its optimizer
                    parameter.grad = mean_over_processes(parameter.grad).nan_to_num(0.0, 0.0, 0.0)
            self.optimizer.step()
            total += loss.detach()
        return total / num_mini_batches

    def broadcast(self) -> None:
        """Give all processes rank 0's network."""
        for parameter in self.net.parameters():
            first_process_decides(parameter.data)

    def scalars(self) -> dict[str, torch.Tensor]:
        """Return the loss of the last pass, and the mean reward of a follower's step."""
        return {"Population/discriminator_loss": self._loss, "Population/discriminator_reward": self._reward}

    def parts(self) -> dict[str, Part]:
        """Return network and optimizer."""
        return {"discriminator": Part(self, learned=True)}

    def state_dict(self) -> dict[str, Any]:
        """Return what belongs to a checkpoint."""
        return {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _inputs(self, obs: Any, actions: torch.Tensor) -> torch.Tensor:
        return torch.cat([MLPModel.get_latent(self._actor, obs).detach(), actions], dim=-1)
