"""One roll-out of all agents, and columns of it that are used a second time under another agent's label.

A relabelled column repeats observations, actions and dones of its source, so only what differs is stored: values,
returns, advantages, log-probabilities and distribution parameters. Of recurrent models only the states at the beginning
of the roll-out are kept: after a done they are zero.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from epo_lab.base.keys import AGENT_ID
from epo_lab.models.hidden import copy_state

from .batch import Batch


class Columns(NamedTuple):
    """Columns of a roll-out under the labels of some agents, and what is stored of each step."""

    source: torch.Tensor
    """Column of the roll-out that each one repeats. Shape is (C,)."""
    labels: torch.Tensor
    """Agent under which each one is evaluated. Shape is (C,)."""
    fields: dict[str, torch.Tensor]
    """Values of every step, by the name a batch gives them. Shapes are (T, C, ...)."""
    params: tuple[torch.Tensor, ...] = ()
    """Parameters of the old distributions. Shapes are (T, C, ...)."""


class SingleStorage(RolloutStorage):
    """rsl_rl's storage, for one agent."""

    num_relabelled = 0

    def mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator[Batch]:
        """Yield rsl_rl's batches of shuffled rows."""
        for batch in super().mini_batch_generator(num_mini_batches, num_epochs):
            yield Batch(**vars(batch))

    def recurrent_mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator[Batch]:
        """Yield rsl_rl's batches of whole columns."""
        for batch in super().recurrent_mini_batch_generator(num_mini_batches, num_epochs):
            yield Batch(**vars(batch))


class PopulationStorage(RolloutStorage):
    """N columns of roll-out and room for ``num_relabelled`` more."""

    distribution_params: Any
    """Parameters of the distributions, each of shape (T, N + S, ...); None before the first step."""

    def __init__(
        self,
        num_envs: int,
        num_steps: int,
        num_relabelled: int,
        agent_ids: torch.Tensor,
        obs: TensorDict,
        actions_shape: list[int],
        device: str,
        keep_hidden: bool = False,
        weighted: bool = False,
    ) -> None:
        """Allocate everything once.

        Args:
            num_envs: Columns of the roll-out, N.
            num_steps: Steps of the roll-out, T.
            num_relabelled: Columns that can be relabelled, S.
            agent_ids: Agent of every column.
            obs: An observation, with ``agent_id``.
            actions_shape: Shape of an action.
            device: Where the tensors live.
            keep_hidden: Whether to keep the recurrent states of all steps instead of those of the first.
            weighted: Whether relabelled rows have importance weights.
        """
        super().__init__("rl", num_envs, num_steps, obs, actions_shape, device)
        self.num_relabelled = num_relabelled
        self.width = num_envs + num_relabelled
        for name in ("values", "actions_log_prob", "returns", "advantages"):
            setattr(self, name, torch.zeros(num_steps, self.width, 1, device=device))
        self.importance = torch.ones(num_steps, self.width, 1, device=device) if weighted else None
        """Importance weights of the advantages. Shape is (T, N + S, 1)."""
        self.time_outs = torch.zeros(num_steps, num_envs, 1, dtype=torch.bool, device=device)
        self.source = torch.arange(self.width, device=device) % num_envs
        """Column of the roll-out that each column repeats. Shape is (N + S,)."""
        self.labels = torch.cat([agent_ids, agent_ids.new_zeros(num_relabelled)]).to(device)
        """Agent under which each column is evaluated. Shape is (N + S,)."""
        self.first_hidden: list[list[torch.Tensor] | None] = [None, None]
        """States of actor and critic before the first step; each a list of tensors (layers, N, hidden)."""
        self._keep_hidden = keep_hidden
        self._all_hidden: list[tuple[Any, Any]] = []

    def add_transition(self, transition: Any) -> None:
        """Add one step of the roll-out."""
        if self.step >= self.num_transitions_per_env:
            raise OverflowError("The roll-out is full: clear() must be called before more is added.")
        step, on_policy = self.step, slice(0, self.num_envs)
        self.observations[step].copy_(transition.observations)
        self.actions[step].copy_(transition.actions)
        self.rewards[step].copy_(transition.rewards.view(-1, 1))
        self.dones[step].copy_(transition.dones.view(-1, 1))
        self.values[step, on_policy].copy_(transition.values)
        self.actions_log_prob[step, on_policy].copy_(transition.actions_log_prob.view(-1, 1))
        if self.distribution_params is None:
            self.distribution_params = tuple(
                torch.zeros(self.num_transitions_per_env, self.width, *p.shape[1:], device=self.device)
                for p in transition.distribution_params
            )
        for stored, new in zip(self.distribution_params, transition.distribution_params, strict=True):
            stored[step, on_policy].copy_(new)
        self._save_first_hidden(transition.hidden_states)
        if self._keep_hidden:
            self._all_hidden.append(tuple(copy_state(state) for state in transition.hidden_states))
        self.step += 1

    @property
    def learned(self) -> Columns:
        """All columns that PPO learns from."""
        fields = {key: getattr(self, name) for name, key in _FIELDS.items()}
        if self.importance is not None:
            fields["importance"] = self.importance
        return Columns(self.source, self.labels, fields, tuple(self.distribution_params))

    def mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator[Batch]:
        """Yield shuffled rows of all columns; the same partition in every epoch."""
        return self.row_batches(self.learned, num_mini_batches, num_epochs)

    def recurrent_mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator[Batch]:
        """Yield shuffled whole columns, split at dones and padded; the same partition in every epoch."""
        return self.column_batches(self.learned, num_mini_batches, num_epochs)

    def row_batches(self, chosen: Columns, num_mini_batches: int, num_epochs: int) -> Generator[Batch]:
        """Yield shuffled rows of some columns."""
        width = len(chosen.source)
        size = width * self.num_transitions_per_env // num_mini_batches
        rows = torch.randperm(num_mini_batches * size, device=self.device)
        columns = rows % width
        sources = torch.div(rows, width, rounding_mode="floor") * self.num_envs + chosen.source[columns]
        labels, relabelled = chosen.labels[columns], columns >= self.num_envs
        observations, actions = self.observations.flatten(0, 1), self.actions.flatten(0, 1)
        stored = {key: value.flatten(0, 1) for key, value in chosen.fields.items()}
        params = [p.flatten(0, 1) for p in chosen.params]
        for _ in range(num_epochs):
            for begin in range(0, num_mini_batches * size, size):
                part = slice(begin, begin + size)
                obs = observations[sources[part]]
                obs[AGENT_ID] = labels[part].unsqueeze(-1)
                yield Batch(
                    labels=labels[part],
                    relabelled=relabelled[part],
                    observations=obs,
                    actions=actions[sources[part]],
                    old_distribution_params=tuple(p[rows[part]] for p in params),
                    **{key: value[rows[part]] for key, value in stored.items()},
                )

    def column_batches(self, chosen: Columns, num_mini_batches: int, num_epochs: int) -> Generator[Batch]:
        """Yield shuffled whole columns of some, split at dones and padded."""
        width = len(chosen.source)
        size = width // num_mini_batches
        columns = torch.randperm(width, device=self.device)[: num_mini_batches * size]
        sources, labels = chosen.source[columns], chosen.labels[columns]
        relabelled = columns >= self.num_envs
        begins = torch.ones(self.num_transitions_per_env, len(sources), dtype=torch.bool, device=self.device)
        begins[1:] = self.dones[:-1, sources].squeeze(-1).bool()
        # Trajectories are ordered by column: where those of each column end
        column_ends = begins.sum(dim=0).cumsum(0)
        ends = column_ends.tolist()
        padded, masks = self._pad(sources, labels, begins, column_ends, ends[-1])
        hidden = [self._trajectory_states(state, sources, column_ends, ends[-1]) for state in self.first_hidden]
        actions = self.actions[:, sources]
        stored = {key: value[:, columns] for key, value in chosen.fields.items()}
        params = [p[:, columns] for p in chosen.params]
        for _ in range(num_epochs):
            first = 0
            for index, last in enumerate(ends[size - 1 :: size]):
                part = slice(index * size, (index + 1) * size)
                yield Batch(
                    labels=labels[part].expand(self.num_transitions_per_env, -1),
                    relabelled=relabelled[part].expand(self.num_transitions_per_env, -1),
                    observations=padded[:, first:last],
                    masks=masks[:, first:last],
                    hidden_states=tuple(_select(state, first, last) for state in hidden),
                    actions=actions[:, part],
                    old_distribution_params=tuple(p[:, part] for p in params),
                    **{key: value[:, part] for key, value in stored.items()},
                )
                first = last

    def hidden_of(self, columns: torch.Tensor) -> list[tuple[Any, Any]]:
        """Return copies of the kept states of some columns, (actor, critic), for the first or for all steps."""
        if self._keep_hidden:
            return [tuple(copy_state(state, columns) for state in states) for states in self._all_hidden]
        first = tuple(None if states is None else tuple(states) for states in self.first_hidden)
        return [tuple(copy_state(states, columns) for states in first)]

    def _save_first_hidden(self, hidden_states: tuple[Any, Any]) -> None:
        """Keep the states of the first step; of a model that has not run yet they are zero."""
        if self.step == 0:
            self.first_hidden, self._all_hidden = [None, None], []
        for model, state in enumerate(hidden_states):
            if state is not None and self.first_hidden[model] is None:
                parts = state if isinstance(state, tuple) else (state,)
                copies = [part.detach().clone() for part in parts]
                self.first_hidden[model] = copies if self.step == 0 else [part.zero_() for part in copies]

    def _pad(
        self, sources: torch.Tensor, labels: torch.Tensor, begins: torch.Tensor, column_ends: torch.Tensor, number: int
    ) -> tuple[TensorDict, torch.Tensor]:
        """Return the observations of all trajectories, one beside the other, and which of their steps exist.

        Args:
            sources: Column of the roll-out that each column repeats. Shape is (C,).
            labels: Agent of each column. Shape is (C,).
            begins: Whether a trajectory begins at a step. Shape is (T, C).
            column_ends: Number of trajectories up to the end of each column. Shape is (C,).
            number: Number of all trajectories.
        """
        steps = torch.arange(len(begins), device=self.device).unsqueeze(1)
        # Step (t, c) of the roll-out is step t - (last beginning) of the trajectory with this number
        trajectory = begins.long().cumsum(0) - 1
        trajectory[:, 1:] += column_ends[:-1]
        position = steps - (begins * steps).cummax(dim=0).values
        rows = torch.full((len(begins), number), -1, dtype=torch.long, device=self.device)
        rows[position, trajectory] = steps * self.num_envs + sources
        masks = rows >= 0
        # Note: what stands behind a trajectory's end is never read, so any row will do
        padded = self.observations.flatten(0, 1)[rows.clamp(min=0)]
        of_column = torch.zeros(number, dtype=torch.long, device=self.device)
        of_column[trajectory] = labels.expand_as(trajectory)
        padded[AGENT_ID] = of_column.view(1, -1, 1).expand(len(begins), -1, 1)
        return padded, masks

    def _trajectory_states(
        self, states: list[torch.Tensor] | None, sources: torch.Tensor, column_ends: torch.Tensor, number: int
    ) -> list[torch.Tensor] | None:
        """Return the states in which all trajectories begin: the stored ones at the first step, zero after a done."""
        if states is None:
            return None
        firsts = torch.cat([column_ends.new_zeros(1), column_ends[:-1]])
        out = []
        for state in states:
            full = torch.zeros(state.shape[0], number, state.shape[2], device=self.device)
            full[:, firsts] = state[:, sources]
            out.append(full)
        return out


_FIELDS = {
    "values": "values",
    "returns": "returns",
    "advantages": "advantages",
    "actions_log_prob": "old_actions_log_prob",
}
"""Stored field and the name a batch gives it."""


def _select(states: list[torch.Tensor] | None, first: int, last: int) -> Any:
    if states is None:
        return None
    parts = [state[:, first:last].contiguous() for state in states]
    return tuple(parts) if len(parts) > 1 else parts[0]
