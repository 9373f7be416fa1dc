"""ESAC: an evolution strategy explores with whole episodes, SAC learns now and then, and the best of both breed.

The environments are played either by the population, one member each, or by the SAC actor. A generation of the
population ends when every member has been judged; then theta, the mutation rate and the winners move on
(``epo_lab/population/esac.py``). Every g-th generation the SAC actor may take over all environments: it plays some
episodes, stores them and takes gradient steps, and goes back into the population as one more member.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from tensordict import TensorDict

from epo_lab.algorithms.base import Held, Part
from epo_lab.base.keys import BROKEN
from epo_lab.base.options import Whole
from epo_lab.base.processes import first_process_decides, sum_over_processes, world_size
from epo_lab.models.members import flatten
from epo_lab.population.esac import EsacCfg, EsacEsCfg, EsacEvolution
from epo_lab.population.first_episodes import GenerationFitnessOptions

from .options import SacOptions
from .population import PopulationOffPolicy, copy_row
from .sac import SAC


@dataclass
class EsacOptions(SacOptions):
    """Settings of :class:`epo_lab.algorithms.ESAC`."""

    num_agents: Whole = 50
    """Members n, the SAC actor included, which divide the environments. Default 50."""
    es: EsacEsCfg = field(default_factory=EsacEsCfg)
    esac: EsacCfg = field(default_factory=EsacCfg)
    fitness: GenerationFitnessOptions = field(default_factory=GenerationFitnessOptions)


class ESAC(PopulationOffPolicy, SAC):
    """Evolution-based Soft Actor-Critic. The master is the best member of the last generation."""

    options_class = EsacOptions
    options: EsacOptions
    evolution: EsacEvolution
    _sac_plays: bool = True
    """Whether the SAC actor plays, in all environments; it begins."""

    def populate(self, env: Any, seed: int, rank: int, slots: range) -> None:
        """Share out the environments among new members."""
        self.master = copy.deepcopy(self.actor)
        """Model of the best member, which normalises as the SAC actor does."""
        self.master.obs_normalizer = self.actor.obs_normalizer
        self._finished = torch.zeros((), device=self.device)
        """Episodes that were finished since the SAC actor took over, in all processes."""
        self._ended = torch.zeros_like(self._finished)
        """Episodes that ended in this iteration, in this process."""
        super().populate(env, seed, rank, slots)

    def make_evolution(self, theta: torch.Tensor, shapes: list[torch.Size], seed: int) -> EsacEvolution:
        """Return ESAC's evolution."""
        return EsacEvolution(self.options.es, self.options.esac, theta, shapes, self.options.num_agents, seed)

    @property
    def _stores(self) -> bool:
        """Whether what happens now goes into the replay."""
        return self._sac_plays or self.options.esac.population_fills_replay

    # --- roll-out

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Return the SAC actor's actions or the members'."""
        if self._stores:
            return super().act(obs)
        self._unit.copy_(self.explore(obs))
        return self.actor.distribution.to_env(self._unit)

    def explore(self, obs: TensorDict) -> torch.Tensor:
        """Draw from the SAC policy, or return the unit actions of every environment's member."""
        return SAC.explore(self, obs) if self._sac_plays else super().explore(obs)

    def take_step(self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step; it is stored if SAC learns from it."""
        if self._stores:
            super().take_step(obs, rewards, dones, extras)
        else:
            self.episodes.step(rewards, dones, extras)
            self._steps += 1
        self._ended += (dones.bool() & ~extras[BROKEN]).sum()

    def compute_returns(self, obs: TensorDict) -> None:
        """Store what came after the last step."""
        if self._stores:
            super().compute_returns(obs)

    def learn(self) -> dict[str, float]:
        """Take the gradient steps that are due, if the SAC actor plays."""
        if self._sac_plays:
            return super().learn()
        if self._stores:
            self.take_in()
        return self.end_iteration()

    # --- generations

    def evolve(self) -> None:
        """Hand the environments over if SAC has played enough, or if all members have been judged."""
        self._finished += sum_over_processes(self._ended)
        self._ended.zero_()
        if self._sac_plays:
            if not self.warming_up and float(self._finished) >= self.options.esac.sac_episodes:
                self._begin_generation()
        else:
            fitness = self.members.fitness.complete()
            if fitness is not None:
                self._end_generation(fitness)
        self._scalars |= self._told | {
            "Population/mutation_rate": self.evolution.sigma,
            "Generation/sac_probability": self.options.esac.probability_at(self._env_steps),
            "Generation/sac_plays": float(self._sac_plays),
            "Generation/gradient_steps": float(self.clock.gradient_steps),
        }

    @property
    def _env_steps(self) -> int:
        """Steps of all environments of all processes, whoever played."""
        return self.clock.steps * self.replay.num_envs * world_size()

    def _end_generation(self, fitness: Any) -> None:
        """Move on with the evolution, keep the best as the master, and perhaps let SAC take over."""
        best = int(fitness.values.argmax())
        copy_row(self.members.policies.rows[best], self.master)
        bred = len(self.evolution.children)
        winners = self.next_generation(fitness)["winners"]
        self._told["Master/fitness"] = float(fitness.values[best])
        self._told["Population/fitness_sac"] = float(fitness.values[0])
        self._told["Generation/sac_wins"] = float(best == 0)
        self._told["Generation/winners_bred"] = sum(0 < slot <= bred for slot in winners) / len(winners)
        if self.evolution.learns(self._env_steps):
            self._sac_plays = True
            self._finished.zero_()
        self.members.begin()

    def _begin_generation(self) -> None:
        """Let the SAC actor go back into the population, which plays again."""
        self._sac_plays = False
        if not self._stores:
            # what is stored next does not follow from what was stored last
            self.replay.cut()
        self.evolution.actor.copy_(flatten(self._parameters))
        self.members.policies.rows[0] = self.evolution.actor.to(self.members.policies.rows)
        self.members.begin()

    # --- what others ask for

    def policy(self, member: int = 0) -> Any:
        """Return the master: the best member of the last generation."""
        return self.master

    # --- state

    @torch.no_grad()
    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's networks and master; a new population begins around the SAC actor."""
        super().broadcast_parameters()
        for parameter in self.master.parameters():
            first_process_decides(parameter)

    def parts(self) -> dict[str, Part]:
        """Return everything beside the master that a resumed run needs."""
        turn = Held(self._turn_state, self._load_turn)
        return super().parts() | {"sac_actor": Part(self.actor, learned=True), "turn": Part(turn)}

    def _turn_state(self) -> dict[str, Any]:
        """Return who plays, and what it has finished."""
        return {"sac_plays": self._sac_plays, "finished": self._finished.clone()}

    def _load_turn(self, state: dict[str, Any]) -> None:
        """Restore who plays."""
        self._sac_plays = state["sac_plays"]
        self._finished.copy_(state["finished"])

    def save(self) -> dict[str, Any]:
        """Return the master and the parts; the SAC actor is one of them."""
        return super().save() | {"actor_state_dict": self.master.state_dict()}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load the master and, if everything is asked for, the SAC actor and all else."""
        loaded = super().load(loaded_dict, load_cfg, strict)
        self.master.load_state_dict(loaded_dict["actor_state_dict"], strict=strict)
        return loaded
