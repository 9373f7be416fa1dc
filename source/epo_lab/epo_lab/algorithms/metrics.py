"""What is logged about a population beside rsl_rl's own numbers. Values stay on the device until an iteration ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from epo_lab.base.keys import BROKEN
from epo_lab.population.genetics import Genetics, gene_spread, pairwise_distance

if TYPE_CHECKING:
    from epo_lab.population.fitness import Fitness

    from .epo import EPO
    from .loss import Loss

GROUPS = ("master", "relabelled", "followers")


class Metrics:
    """Collects numbers during an iteration and hands them out as floats by tag in :attr:`values`."""

    def __init__(self, algorithm: EPO) -> None:
        """Create the collection.

        Args:
            algorithm: The algorithm that is measured.
        """
        self._alg = algorithm
        device, num_envs = algorithm.agent_ids.device, len(algorithm.agent_ids)
        self.values: dict[str, float] = {}
        self.emit_to_extras = True
        """Whether the last step of a roll-out carries the numbers in ``extras["log"]``, for rsl_rl's own runner."""
        self.skipped_updates = 0
        self.find_master()
        self._return = torch.zeros(num_envs, device=device)
        self._length = torch.zeros(num_envs, device=device)
        # rows: count, return, length of finished episodes; columns: master, everybody
        self._finished = torch.zeros(3, 2, dtype=torch.float64, device=device)
        # rows: count, ratio, outside of the clip range, with a gradient; columns: by who learns from whose data
        self._ratios = torch.zeros(4, len(GROUPS), dtype=torch.float64, device=device)
        self._last_episode: dict[str, torch.Tensor] = {}
        self._offpolicy: dict[str, torch.Tensor] = {}
        self._noted: dict[str, torch.Tensor] = {}
        self._generation: dict[str, float] = {}
        self._census: dict[str, float] = {}
        self.agents: dict[str, Any] | None = None
        """The latest census: a value for every agent."""

    def find_master(self) -> None:
        """Note the master's environments; to be called again when they change."""
        self._master = (self._alg.agent_ids == 0).double()

    def step(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step; ``extras["last_episode"]`` may hold values of every environment's last episode."""
        self._last_episode = extras.get("last_episode", {})
        self._return += rewards
        self._length += 1
        done = dones.double()
        if BROKEN in extras:
            # no episode ended there
            done = done * (~extras[BROKEN].to(done.device)).double()
        rows = torch.stack([done, done * self._return, done * self._length])
        self._finished += torch.stack([rows @ self._master, rows.sum(dim=1)], dim=1)
        alive = 1.0 - dones.to(self._return.dtype)
        self._return *= alive
        self._length *= alive
        storage = self._alg.storage
        if self.emit_to_extras and self.values and storage.step == storage.num_transitions_per_env - 1:
            extras["log"] = {**extras.get("log", {}), **self.values}

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {
            "return": self._return.clone(),
            "length": self._length.clone(),
            "generation": self._generation,
            "skipped_updates": self.skipped_updates,
        }

    def load_state_dict(self, state: dict[str, Any], *, running_episodes: bool) -> None:
        """Restore what :meth:`state_dict` returned, the sums of the running episodes only if these go on."""
        if running_episodes:
            self._return.copy_(state["return"])
            self._length.copy_(state["length"])
        self._generation, self.skipped_updates = state["generation"], state["skipped_updates"]

    def relabelled(
        self,
        mu: torch.Tensor,
        behaviour: list[torch.Tensor],
        relabelled: tuple[torch.Tensor, ...],
        num_envs: int,
    ) -> None:
        """Measure how far the relabelled data are from the policy that learns from them.

        Args:
            mu: Ratio of the new agent's to the behaviour's probability.
            behaviour: Distribution parameters of the agents that acted.
            relabelled: Distribution parameters of the agents that learn.
            num_envs: Number of environments.
        """
        own = mu.new_tensor(len(mu) * float(num_envs) / self._alg.num_agents)
        total, square = own + mu.sum(), own + mu.square().sum()
        self._offpolicy = {
            "Population/is_deviation": (1.0 - mu).abs().mean(),
            # effective share of the master's own and the relabelled samples
            "Population/effective_sample_size": total.square() / ((own + mu.numel()) * square),
            "Population/kl_to_master": self._alg.actor.get_kl_divergence(tuple(behaviour), relabelled).mean(),
        }

    def mini_batch(self, batch: Any, loss: Loss, clip: float) -> None:
        """Take in the ratios of a mini-batch, by who learns from whose data."""
        if self._alg.num_agents == 1:
            return
        with torch.no_grad():
            ratio = loss.ratio.double()
            outside = ((ratio - 1.0).abs() > clip).double()
            gains = batch.advantages.reshape(ratio.shape) > 0
            carries = torch.where(gains, ratio < 1.0 + clip, ratio > 1.0 - clip).double()
            masters = (batch.labels == 0) & ~batch.relabelled
            for column, rows in enumerate((masters, batch.relabelled, ~masters & ~batch.relabelled)):
                weight = rows.double()
                self._ratios[0, column] += weight.sum()
                self._ratios[1, column] += (weight * ratio).sum()
                self._ratios[2, column] += (weight * outside).sum()
                self._ratios[3, column] += (weight * carries).sum()

    def note(self, values: dict[str, torch.Tensor]) -> None:
        """Take in numbers of this iteration that were measured elsewhere."""
        self._noted |= values

    def counted(self, scalars: dict[str, float], agents: dict[str, Any] | None = None) -> None:
        """Take in the numbers of a census, and its value for every agent."""
        self._census |= scalars
        self.agents = agents or self.agents

    def checked(self, fitness: Fitness, genetics: Genetics) -> None:
        """Take in a check of the genetic algorithm."""
        trigger = genetics.last_trigger
        if trigger is not None and not math.isnan(trigger.spread):
            self._generation = {
                "Generation/fitness_spread": trigger.spread,
                "Generation/fitness_median": trigger.median,
                "Generation/threshold": trigger.threshold,
            }

    def end_iteration(self) -> None:
        """Turn everything into floats."""
        finished = self._finished.tolist()
        values: dict[str, float] = {}
        for column, name in enumerate(("Master", "Population")):
            if finished[0][column] > 0:
                values[f"{name}/return"] = finished[1][column] / finished[0][column]
                values[f"{name}/episode_length"] = finished[2][column] / finished[0][column]
        for name, last in self._last_episode.items():
            mean = float(last[self._master.bool()].nanmean())
            if not math.isnan(mean):
                values[f"Master/{name}"] = mean
        fitness = self._alg.fitness.compute().values
        if not math.isnan(float(fitness[0])):
            values["Master/fitness"] = float(fitness[0])
        if self._alg.num_agents > 1:
            values |= self._population_values(fitness)
        values["Guard/skipped_updates"] = float(self.skipped_updates)
        self.values = values
        self._finished.zero_()
        self._ratios.zero_()

    def _population_values(self, fitness: torch.Tensor) -> dict[str, float]:
        alg = self._alg
        measured = self._offpolicy | self._noted
        self._noted = {}
        values = {tag: float(value) for tag, value in measured.items()} | self._generation
        known = fitness[1:][~fitness[1:].isnan()]
        if len(known):
            quantiles = torch.quantile(known, torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=known.dtype)).tolist()
            for name, value in zip(("min", "q25", "median", "q75", "max"), quantiles, strict=True):
                values[f"Population/fitness_{name}"] = value
        genes = alg._raw_actor.genes.detach()
        values["Population/gene_spread"] = gene_spread(genes)
        values["Population/gene_distance"] = pairwise_distance(genes)
        values["Generation/events"] = float(alg.genetics.events)
        values["Generation/checks"] = float(alg.genetics.checks)
        ages = [alg.iteration - birth for birth in alg.genetics.births[1:]]
        values["Generation/mean_age"] = sum(ages) / len(ages)
        values |= self._census
        self._census = {}
        counts, ratios, outside, carries = self._ratios.tolist()
        for column, name in enumerate(GROUPS):
            if counts[column]:
                values[f"Population/ratio_{name}"] = ratios[column] / counts[column]
                values[f"Population/clip_fraction_{name}"] = outside[column] / counts[column]
                values[f"Population/gradient_fraction_{name}"] = carries[column] / counts[column]
        return values
