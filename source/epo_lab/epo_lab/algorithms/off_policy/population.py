"""What CEM-RL and ESAC share: members of a population play in the environments, beside a critic and a replay.

Several processes divide the members, and each has a replay of what its own do. Gradients are averaged over processes,
so that all hold the same networks and the same members without sending any.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.algorithms.base import Held, Log, Part
from epo_lab.algorithms.meters import EpisodeMeter, fitness_quantiles
from epo_lab.base.keys import LOG
from epo_lab.base.processes import check_agreement, world_size
from epo_lab.models.members import flatten, network_parameters, write_row
from epo_lab.population.assignment import own_slots
from epo_lab.population.evolution import Evolution, apply
from epo_lab.population.fitness import Fitness

from .algorithm import OffPolicy
from .es import GENERATIONS, check_members, process_of
from .members import Members


class PopulationOffPolicy(OffPolicy):
    """An off-policy algorithm whose environments are played by members; one generation follows the other."""

    members: Any = None
    """The population; None if there are too few environments for it, which are enough to play."""
    evolution: Any
    options: Any

    @classmethod
    def construct_algorithm(cls, obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> Any:
        """Build networks, replay, population and algorithm from a runner's settings."""
        algorithm: Any = super().construct_algorithm(obs, env, cfg, device)
        rank, num_processes = process_of(cfg)
        slots = own_slots(algorithm.options.num_agents, rank, num_processes)
        algorithm.populate(env, int(cfg.get("seed") or 0) - rank, rank, slots)
        return algorithm

    def populate(self, env: VecEnv, seed: int, rank: int, slots: range) -> None:
        """Share out the environments among new members.

        Args:
            env: The environment.
            seed: Seed of everything the population draws.
            rank: Number of this process.
            slots: Members of this process.
        """
        number = self.options.num_agents
        self._parameters = list(network_parameters(self.actor))
        self._told: dict[str, float] = {}
        """What is logged of the last generation."""
        self._log = Log(GENERATIONS)
        # nobody acts as the master, so that all episodes are the population's
        self.episodes = EpisodeMeter(torch.full((env.num_envs,), -1, device=self.device), joint=True)
        if number > 1 and slots and env.num_envs % len(slots) == 0:
            self.members = Members(self.actor, env, number, self.options.fitness, seed + rank, self.device, slots)
            self.begin_evolution(seed)

    def begin_evolution(self, seed: int) -> None:
        """Begin with a population around the policy as it is."""
        self.evolution = self.make_evolution(flatten(self._parameters).cpu(), self.members.policies.shapes, seed)
        self.write_members()

    @abstractmethod
    def make_evolution(self, theta: torch.Tensor, shapes: list[torch.Size], seed: int) -> Evolution:
        """Return what decides about generations.

        Args:
            theta: First parameters. Shape is (D,).
            shapes: Shapes of the parameters that theta is made of.
            seed: Seed of everything that is drawn.
        """

    def write_members(self) -> None:
        """Let the members be those of the current generation."""
        self.members.policies.rows.copy_(self.evolution.ask())

    def train_mode(self) -> None:
        """Prepare for training; this is where a population that does not fit its environments is refused."""
        check_members(self.replay.num_envs, self.options.num_agents, world_size())
        super().train_mode()
        if self.clock.steps == 0:
            # a runner may have begun episodes midway
            self.members.begin()

    # --- roll-out

    def explore(self, obs: TensorDict) -> torch.Tensor:
        """Return the unit actions of every environment's member."""
        return self.actor.distribution.unit(self.members.policies.act_outputs(obs))

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Take in one step; nobody learns from, or is judged by, an episode that a new generation cut off."""
        whole = self.members.step(rewards, dones, extras)
        self.take_step(obs, rewards, dones, whole)
        if LOG in whole:
            extras[LOG] = whole[LOG]

    def take_step(self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step, in whose extras episodes that were cut off are broken."""
        super().process_env_step(obs, rewards, dones, extras)

    # --- generations

    def next_generation(self, fitness: Fitness) -> dict[str, Any]:
        """Let the evolution decide, replace the members, and return what it recorded."""
        generation = self.evolution.propose(fitness, self.members.genome, self.clock)
        apply(generation, self.members.genome)
        check_agreement(self.members.policies.rows)
        self._told = fitness_quantiles(fitness.values)
        self._told["Population/fitness_mean"] = float(fitness.values.mean())
        self._told["Generation/events"] = float(self.evolution.number)
        self._log.add(GENERATIONS, generation.record)
        return generation.record

    def _measure(self) -> dict[str, float]:
        values = super()._measure()
        # the tracker of a single policy knows all environments, whoever acts
        values.pop("Master/fitness", None)
        return values

    # --- what others ask for

    def env_members(self) -> list[int]:
        """Return the member of each environment."""
        return self.members.agent_ids.tolist()

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Return the generations since the last call."""
        return self._log.take()

    def score(self) -> float | None:
        """Return how good the master is."""
        return self._told.get("Master/fitness", -math.inf)

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        super().interrupt(forget=forget)
        self.members.interrupt(forget=forget)

    # --- state

    def memory(self) -> dict[str, list[Any]]:
        """Return networks, the stacked members among them, optimizers and replay."""
        held = super().memory()
        return held | {"networks": [*held["networks"], self.policy(), self.members.policies]}

    def parts(self) -> dict[str, Part]:
        """Return everything beside the master that a resumed run needs."""
        own = super().parts()
        if self.members is None:
            return own
        population = {f"members_{name}": part for name, part in self.members.parts().items()}
        generation = Held(self._generation_state, self._load_generation)
        return own | population | {"evolution": Part(self.evolution), "generation": Part(generation)}

    def _generation_state(self) -> dict[str, Any]:
        """Return the members as they are, and what is logged of the last generation."""
        return {"rows": self.members.genome.state_dict(), "told": self._told}

    def _load_generation(self, state: dict[str, Any]) -> None:
        """Restore members and log."""
        self.members.genome.load_state_dict(state["rows"])
        self._told = dict(state["told"])

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load the master and, if everything is asked for, all else."""
        loaded = super().load(loaded_dict, load_cfg, strict)
        if self.members is not None and "evolution" not in loaded_dict.get("parts", {}):
            # a new population around a trained policy
            self.begin_evolution(self.evolution.seed)
        return loaded

    def has_envs_of(self, loaded_dict: dict[str, Any]) -> bool:
        """Return whether a checkpoint has as many environments as there are here, and the same members'."""
        columns = loaded_dict.get("parts", {}).get("members_columns")
        return self.members is not None and columns is not None and self.members.shares(columns["agent_ids"])

    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's networks; a new population begins around them."""
        super().broadcast_parameters()
        if self.clock.steps == 0:
            self.begin_evolution(self.evolution.seed)


def copy_row(row: torch.Tensor, model: Any) -> None:
    """Write a row of parameters into a model."""
    write_row(row, list(network_parameters(model)))
