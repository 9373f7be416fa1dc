"""Members of a population in their environments: who acts where, and what each reaches in whole episodes.

Several processes divide the members: each lets its own play and knows the weights of all, because all draw the same.
Only what the members reach goes from process to process.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from rsl_rl.env import VecEnv

from epo_lab.algorithms.base import Part
from epo_lab.base.keys import BROKEN
from epo_lab.models.members import StackedGenome, StackedPolicies
from epo_lab.population.assignment import assign_agents
from epo_lab.population.first_episodes import FirstEpisodes
from epo_lab.population.fitness import FitnessOptions


class Members:
    """Every environment belongs to one member for the whole run; a generation lasts until each has been judged."""

    def __init__(
        self,
        actor: Any,
        env: VecEnv,
        num_members: int,
        fitness: FitnessOptions,
        seed: int,
        device: str,
        slots: range | None = None,
    ) -> None:
        """Share out the environments.

        Args:
            actor: Model that all members are copies of.
            env: The environment.
            num_members: Number of members of all processes.
            fitness: What an episode is worth, and how many a generation lasts.
            seed: Seed of how the environments are shared out.
            device: Device of the networks.
            slots: Members of this process, whose number divides that of the environments. Defaults to None: all.
        """
        self.slots = slots or range(num_members)
        self.agent_ids = (self.slots.start + assign_agents(env.num_envs, len(self.slots), seed)).to(device)
        self.policies = StackedPolicies(actor, num_members, self.agent_ids, self.slots)
        self.genome = StackedGenome(self.policies)
        self.fitness = FirstEpisodes(
            self.agent_ids,
            num_members,
            source=fitness.source,
            min_coverage=fitness.min_coverage,
            min_episodes=fitness.min_episodes,
        )
        self._env = weakref.ref(env)
        self._fresh = torch.zeros(env.num_envs, dtype=torch.bool, device=device)
        """Environments whose episode ended with the last step."""
        self._cut = torch.zeros_like(self._fresh)
        """Environments whose episode is made to end with the next step."""

    def step(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> dict[str, Any]:
        """Take in one step of all environments, and return extras in which episodes that were cut off are broken."""
        cut = self._cut | extras[BROKEN].to(self._cut.device) if BROKEN in extras else self._cut
        self._cut = torch.zeros_like(self._cut)
        self.fitness.step(rewards, dones, extras)
        self.policies.reset(dones)
        self._fresh = dones.bool()
        return {**extras, BROKEN: cut}

    def begin(self) -> None:
        """Begin a generation: running episodes end with the next step, and only those after it count."""
        self.fitness.begin(self._fresh)
        self._cut = ~self._fresh
        env = self._env()
        if env is not None:
            with torch.inference_mode():
                # Note: where an environment ends episodes by another clock, they end by themselves and do not count
                running = ~self._fresh.to(env.episode_length_buf.device)
                env.episode_length_buf.masked_fill_(running, int(env.max_episode_length))

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        self._fresh.zero_()
        self._cut.zero_()
        self.fitness.interrupt(forget=forget)
        self.policies.reset()

    def shares(self, agent_ids: torch.Tensor) -> bool:
        """Return whether environments with these members are as many as here, and the same members'."""
        return len(agent_ids) == len(self.agent_ids) and set(agent_ids.tolist()) == set(self.slots)

    def parts(self) -> dict[str, Part]:
        """Return everything beside the rows that a resumed run needs."""
        return {
            "columns": Part(self, per_env=True),
            "fitness": Part(self.fitness, per_env=True),
            "hidden": Part(self.policies, per_env=True),
        }

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return whose each environment is, and where an episode is about to begin."""
        return {"agent_ids": self.agent_ids.cpu(), "fresh": self._fresh.clone(), "cut": self._cut.clone()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.agent_ids.copy_(state["agent_ids"])
        self._fresh.copy_(state["fresh"])
        self._cut.copy_(state["cut"])
        self.policies.assign(self.agent_ids)
