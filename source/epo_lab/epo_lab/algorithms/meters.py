"""Meters: sums on the device during an iteration, floats when it ends."""

from __future__ import annotations

import math
from typing import Any

import torch

from epo_lab.base.keys import LAST_EPISODE
from epo_lab.base.processes import sum_over_processes
from epo_lab.population.episodes import EpisodeNotes
from epo_lab.population.fitness import FitnessOptions
from epo_lab.storage.batch import Batch

TRUE_OBJECTIVE, FITNESS = "Master/true_objective", "Master/fitness"
QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1.0}
SOURCES = ("master", "relabelled", "followers")


class EpisodeMeter:
    """Return and length of the episodes that ended in an iteration: the master's, and everybody's."""

    def __init__(self, agent_ids: torch.Tensor, *, joint: bool = False) -> None:
        """Create the meter.

        Args:
            agent_ids: Agent of every environment; the tensor is kept, so that a change of it is seen.
            joint: Whether the episodes of all processes count, because each has other agents. Default False.
        """
        self._joint = joint
        num_envs, device = len(agent_ids), agent_ids.device
        self._agent_ids = agent_ids
        self._notes = EpisodeNotes(num_envs, device)
        # rows: count, return, length of finished episodes; columns: master, everybody
        self._finished = torch.zeros(3, 2, dtype=torch.float64, device=device)
        self._last_episode: dict[str, torch.Tensor] = {}
        self.find_master()

    def find_master(self) -> None:
        """Note the master's environments; to be called again when they change."""
        self._master = (self._agent_ids == 0).double()

    def step(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step; the extras may hold values of every environment's last episode."""
        self._last_episode = extras.get(LAST_EPISODE, {})
        self._notes.step(rewards, dones, extras)
        if self._notes.full:
            self._work_out()

    def _work_out(self) -> None:
        """Add up the episodes that ended since the last time."""
        steps = self._notes.take()
        if steps is None:
            return
        ended = steps.ended.double()
        rows = torch.stack([ended, ended * steps.returns, ended * steps.lengths]).sum(dim=1)
        self._finished += torch.stack([rows @ self._master, rows.sum(dim=1)], dim=1)

    def take(self) -> dict[str, float]:
        """Return the means of this iteration, and begin the next."""
        self._work_out()
        finished = (sum_over_processes(self._finished) if self._joint else self._finished).tolist()
        values: dict[str, float] = {}
        for column, name in enumerate(("Master", "Population")):
            if finished[0][column] > 0:
                values[f"{name}/return"] = finished[1][column] / finished[0][column]
                values[f"{name}/episode_length"] = finished[2][column] / finished[0][column]
        self._finished.zero_()
        return values | last_episodes(self._last_episode, self._master.bool())

    def interrupt(self) -> None:
        """Forget the running episodes."""
        self._work_out()
        self._notes.interrupt()

    def state_dict(self) -> dict[str, Any]:
        """Return the sums of the running episodes."""
        self._work_out()
        return {"return": self._notes.running_return.clone(), "length": self._notes.running_length.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._notes.running_return.copy_(state["return"])
        self._notes.running_length.copy_(state["length"])


class RatioMeter:
    """Importance ratios of mini-batches, by who learns from whose data."""

    def __init__(self, device: str | torch.device) -> None:
        """Create the meter."""
        # rows: count, ratio, outside of the clip range, with a gradient; columns: sources
        self._sums = torch.zeros(4, len(SOURCES), dtype=torch.float64, device=device)

    @torch.no_grad()
    def add(self, batch: Batch, ratio: torch.Tensor, clip: float) -> None:
        """Take in the ratios of a mini-batch.

        Args:
            batch: The mini-batch, of a population.
            ratio: Importance ratio of every row.
            clip: Clip range.
        """
        # Clipped surrogate: a row has a gradient unless its ratio has left the clip range in the direction of its gain
        outside = (ratio - 1.0).abs() > clip
        gains = batch.advantages.reshape(ratio.shape) > 0
        carries = torch.where(gains, ratio < 1.0 + clip, ratio > 1.0 - clip)
        # Sums by source, as one product
        masters = (batch.labels == 0) & ~batch.relabelled
        rows = torch.stack([masters, batch.relabelled, ~masters & ~batch.relabelled]).flatten(1).to(ratio.dtype)
        values = torch.stack([torch.ones_like(ratio), ratio, outside, carries]).flatten(1)
        self._sums += values @ rows.T

    def take(self) -> dict[str, float]:
        """Return the means of this iteration, and begin the next."""
        counts, ratios, outside, carries = self._sums.tolist()
        self._sums.zero_()
        values = {}
        for column, name in enumerate(SOURCES):
            if counts[column]:
                values[f"Population/ratio_{name}"] = ratios[column] / counts[column]
                values[f"Population/clip_fraction_{name}"] = outside[column] / counts[column]
                values[f"Population/gradient_fraction_{name}"] = carries[column] / counts[column]
        return values


def read_all(values: dict[str, Any]) -> dict[str, float]:
    """Return scalars as floats; those on a device are read at once."""
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    read = torch.stack([value.double() for value in tensors.values()]).tolist() if tensors else []
    return values | dict(zip(tensors, read, strict=True))


def last_episodes(values: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, float]:
    """Return the means of what the last episodes of the master's environments brought, as far as it is known."""
    means = {f"Master/{name}": float(last[rows].nanmean()) for name, last in values.items()}
    return {tag: mean for tag, mean in means.items() if not math.isnan(mean)}


def fitness_quantiles(fitness: torch.Tensor) -> dict[str, float]:
    """Return the quantiles of those fitness values that are known."""
    known = fitness[~fitness.isnan()]
    if not len(known):
        return {}
    values = torch.quantile(known, torch.tensor(list(QUANTILES.values()), dtype=known.dtype)).tolist()
    return {f"Population/fitness_{name}": value for name, value in zip(QUANTILES, values, strict=True)}


def master_score(scalars: dict[str, float], fitness: FitnessOptions) -> float:
    """Return how good the master is, by what is logged of it.

    Successes alone would prefer the start of a curriculum, where they are easy: a task that has one also gives its true
    objective.
    """
    by_task = TRUE_OBJECTIVE in scalars and fitness.source != "return"
    return scalars.get(TRUE_OBJECTIVE if by_task else FITNESS, -math.inf)
