"""CPO: followers stay near the master, because they also imitate what turned out well in its data.

    loss = PPO's + beta * sum over followers i of E[-w_i log pi_i(u|s)],   w_i = exp(A_i / lambda)

over the master's own steps (s, u). A_i is the one-step advantage of a step under the follower's critic, so that every
follower is drawn to what it thinks well of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from tensordict import TensorDict

from epo_lab.base.keys import AGENT_ID

from .relabel import value_as
from .storage import Columns, PopulationBatch
from .value_normalizer import ValueNormalizer

if TYPE_CHECKING:
    from .epo import EPO

MOST_FOLLOWERS = 7
"""Up to so many followers learn from all of the master's columns; of more each takes a share of them."""
LARGEST_WEIGHT = 100.0


class Attraction:
    """The followers' loss on the master's data."""

    def __init__(self, alg: EPO) -> None:
        """Allocate everything once.

        Args:
            alg: The algorithm; it has more than one agent.
        """
        self._alg = alg
        st, followers = alg.storage, alg.num_agents - 1
        masters = int((alg.ids_cpu == 0).sum())
        self._share = masters if followers <= MOST_FOLLOWERS else max(1, masters // followers)
        labels = torch.arange(1, followers + 1, device=alg.device).repeat_interleave(self._share)
        weights = torch.zeros(st.num_transitions_per_env, len(labels), 1, device=alg.device)
        # a batch has no field of its own for weights
        self._columns = Columns(torch.zeros_like(labels), labels, {"advantages": weights})
        self.returns = ValueNormalizer(alg.device) if alg.options.reward_scale == 1.0 else None
        """Scale of the returns where rewards are not scaled; it makes advantages small numbers."""
        self._sums = torch.zeros(3, device=alg.device)

    def prepare(self, last_obs: TensorDict) -> None:
        """Weigh the master's steps of a roll-out for every follower.

        Args:
            last_obs: Observations after the last step, of all columns.
        """
        alg, st = self._alg, self._alg.storage
        masters = (alg.ids_cpu == 0).nonzero().flatten()
        if self._share < len(masters):
            draws = [torch.randperm(len(masters), generator=alg.column_generator) for _ in range(alg.num_agents - 1)]
            source = torch.cat([masters[draw[: self._share]] for draw in draws])
        else:
            source = masters.repeat(alg.num_agents - 1)
        self._columns.source.copy_(source)
        _, values, targets = value_as(alg, self._columns.source, self._columns.labels, last_obs)
        advantages = targets - values
        if self.returns is not None:
            self.returns.update(st.returns[:, : st.num_envs])
            advantages = advantages / self.returns.scale()
        weights = (advantages / alg.options.attraction_temperature).exp().clamp(max=LARGEST_WEIGHT)
        self._columns.fields["advantages"].copy_(weights)

    def batches(self, num_mini_batches: int, num_epochs: int) -> Iterator[PopulationBatch]:
        """Yield a mini-batch for each of PPO's; fewer if there are not as many columns."""
        st, most = self._alg.storage, len(self._columns.labels)
        self._sums.zero_()
        if self._alg.actor.is_recurrent:
            return st.column_batches(self._columns, min(num_mini_batches, most), num_epochs)
        return st.row_batches(self._columns, min(num_mini_batches, most), num_epochs)

    def loss(self, batch: PopulationBatch) -> torch.Tensor:
        """Return beta times the sum of the followers' losses; each has equally many rows."""
        alg = self._alg
        distribution = alg._raw_actor.distribution
        # what is logged of the action noise is PPO's batch
        kept = distribution._distribution
        alg.actor(batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True)
        log_prob = alg.actor.get_output_log_prob(batch.actions)
        distribution._distribution = kept
        weights = batch.advantages.squeeze(-1)
        mean = -(weights * log_prob).mean()
        self._sums += torch.stack([torch.ones_like(mean), mean.detach(), weights.mean()])
        return alg.options.attraction * (alg.num_agents - 1) * mean

    def measured(self) -> dict[str, torch.Tensor]:
        """Return what is logged of an update."""
        count, loss, weight = self._sums
        return {"Population/attraction_loss": loss / count, "Population/attraction_weight": weight / count}


def masters_log_prob(alg: EPO, batch: PopulationBatch) -> torch.Tensor:
    """Return the log-probability that the master gives to all actions of a batch, without a gradient."""
    obs = batch.observations.clone(recurse=False)
    obs[AGENT_ID] = torch.zeros_like(obs[AGENT_ID])
    with torch.no_grad():
        alg.actor(obs, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True)
        return alg.actor.get_output_log_prob(batch.actions)


def stay_near(batch: PopulationBatch, log_prob: torch.Tensor, masters: torch.Tensor, coef: float) -> None:
    """Take ``coef`` log(follower / master) off the advantages of the followers' own rows."""
    own = (batch.labels > 0) & ~batch.relabelled
    batch.advantages = batch.advantages - torch.where(own, coef * (log_prob - masters), 0.0).unsqueeze(-1)
