"""Evolution strategies as an algorithm: every environment plays one member of the population, whole episodes long.

When all members have been judged, theta moves along the noise that paid (``epo_lab/population/es.py``) and the next
generation begins. There are no gradients and no critic. The master is theta, the mean of the population; it is what is
exported and evaluated, and does not act while training.

Several processes divide the members. Each draws the noise of all from (seed, number of the generation) and moves theta
for itself; what they exchange are returns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.utils import resolve_class, resolve_obs_groups
from tensordict import TensorDict

from epo_lab.algorithms.base import Algorithm, Held, Log, Part, load_parts, part_states
from epo_lab.algorithms.meters import EpisodeMeter, fitness_quantiles
from epo_lab.algorithms.on_policy.construct import LATENT_MODELS
from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.keys import LOG
from epo_lab.base.options import Whole, build, without_class
from epo_lab.base.processes import check_agreement, first_process_decides, world_size
from epo_lab.models.members import flatten, network_parameters, write_row
from epo_lab.models.squashed import BoundedOutput
from epo_lab.population.assignment import check_division, check_processes, own_slots
from epo_lab.population.es import EsCfg, EvolutionStrategy
from epo_lab.population.evolution import apply
from epo_lab.population.first_episodes import GenerationFitnessOptions

from .members import Members
from .options import Bounds

GENERATIONS = "generations"
"""Kind of records: every generation, as the evolution tells it."""


@dataclass
class EsOptions:
    """Settings of :class:`epo_lab.algorithms.ES`."""

    num_agents: Whole = 50
    """Members n of the population, which divide the environments. Default 50."""
    fitness: GenerationFitnessOptions = field(default_factory=GenerationFitnessOptions)
    action_bounds: Bounds = None
    """Bounds of the actions: b for +-b, a number for every action, or a pair [low, high] for every action. Default
    None: the agent's ``clip_actions``, or 1."""
    es: EsCfg = field(default_factory=EsCfg)


def process_of(cfg: dict[str, Any]) -> tuple[int, int]:
    """Return the number of this process and how many there are, from a runner's settings."""
    processes = cfg.get("multi_gpu") or {"global_rank": 0, "world_size": 1}
    return processes["global_rank"], processes["world_size"]


def check_members(num_envs: int, num_agents: int, num_processes: int) -> None:
    """Raise a :class:`UserError` if processes cannot divide the members, or these not share their environments."""
    check_processes(num_agents, num_processes)
    check_division(num_envs, num_agents // num_processes)


class ES(Algorithm):
    """OpenAI's evolution strategy with the interface that rsl_rl's runner takes."""

    def __init__(self, actor: Any, members: Any, options: EsOptions, num_envs: int, seed: int, device: str) -> None:
        """Create the algorithm; :meth:`construct_algorithm` is how a runner does it.

        Args:
            actor: The model; its first parameters are theta.
            members: The population; None if there are too few environments for it, which are enough to play.
            options: Options.
            num_envs: Number of environments.
            seed: Seed of everything the population draws.
            device: Device of the networks.
        """
        self.actor, self.members, self.options, self.device = actor, members, options, device
        self._num_envs = num_envs
        self.learning_rate = options.es.learning_rate
        self.clock = Clock()
        self._parameters = list(network_parameters(actor))
        self._scalars: dict[str, float] = {}
        self._told: dict[str, float] = {}
        """What is logged of the last generation."""
        self._log = Log(GENERATIONS)
        self._seen: list[Any] = []
        """Observations of this roll-out."""
        if members is not None:
            theta = flatten(self._parameters).cpu()
            self.evolution = EvolutionStrategy(options.es, theta, members.policies.shapes, options.num_agents, seed)
            # nobody acts as the master, so that all episodes are the population's
            self.episodes = EpisodeMeter(torch.full_like(members.agent_ids, -1), joint=True)
            self._write_members()

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> ES:
        """Build model, population and algorithm from a runner's settings."""
        options = build(EsOptions, without_class(cfg["algorithm"]))
        cfg["obs_groups"] = resolve_obs_groups(obs, cfg["obs_groups"], ["actor"])
        # ranks share the population, whatever was added to their seeds
        rank, num_processes = process_of(cfg)
        seed = int(cfg.get("seed") or 0) - rank
        bounds = options.action_bounds if options.action_bounds is not None else cfg.get("clip_actions") or 1.0
        actor = make_actor(cfg["actor"], obs, cfg["obs_groups"], env.num_actions, bounds).to(device)
        members, number = None, options.num_agents
        slots = own_slots(number, rank, num_processes)
        if number > 1 and slots and env.num_envs % len(slots) == 0:
            members = Members(actor, env, number, options.fitness, seed + rank, device, slots)
        return ES(actor, members, options, env.num_envs, seed, device)

    def _write_members(self) -> None:
        """Let the members be those of the current generation, and the master its mean."""
        self.members.policies.rows.copy_(self.evolution.ask())
        write_row(self.evolution.theta, self._parameters)

    # --- what the runner calls

    def train_mode(self) -> None:
        """Prepare for training; this is where a population that does not fit its environments is refused."""
        check_members(self._num_envs, self.options.num_agents, world_size())
        self.options.es.check(self.options.num_agents)
        self.actor.train()
        if self.clock.steps == 0:
            # a runner may have begun episodes midway
            self.members.begin()

    def eval_mode(self) -> None:
        """Prepare for playing."""
        self.actor.eval()

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Return the action of every environment's member."""
        return self.members.policies(obs)

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Take in one step."""
        whole = self.members.step(rewards, dones, extras)
        self.episodes.step(rewards, dones, whole)
        self._seen.append(obs)
        if self.scalars_in_extras and self._scalars:
            extras[LOG] = {**extras.get(LOG, {}), **self._scalars}

    def compute_returns(self, obs: TensorDict) -> None:
        """Nothing: whole episodes are counted."""

    def learn(self) -> dict[str, float]:
        """Normalise by what was seen in this roll-out too; nothing else is learned from single steps."""
        self.clock.iterations += 1
        self.clock.steps += len(self._seen)
        if self._seen:
            self.actor.update_normalization(torch.cat(self._seen))
        self._seen = []
        return {}

    def evolve(self) -> None:
        """Begin the next generation if all members have been judged, and measure the iteration."""
        fitness = self.members.fitness.complete()
        if fitness is not None:
            self._next_generation(fitness)
        self._scalars = self.episodes.take() | self._told | {"Population/mutation_rate": self.evolution.sigma}
        self._scalars["Generation/events"] = float(self.evolution.number)

    def _next_generation(self, fitness: Any) -> None:
        # Note: all processes have the same fitness and seed, so each decides the same for itself
        generation = self.evolution.propose(fitness, self.members.genome, self.clock)
        if generation is None:
            return
        apply(generation, self.members.genome)
        write_row(self.evolution.theta, self._parameters)
        check_agreement(flatten(self._parameters))
        self.members.begin()
        mean = {"Population/fitness_mean": float(fitness.values.mean())}
        self._told = fitness_quantiles(fitness.values) | mean
        self._told["Generation/direction"] = generation.record["direction"]
        self._log.add(GENERATIONS, generation.record)

    # --- what others ask for

    def env_members(self) -> list[int]:
        """Return the member of each environment."""
        return self.members.agent_ids.tolist()

    def policy(self, member: int = 0) -> Any:
        """Return the master: the mean of the population."""
        return self.actor

    def scalars(self) -> dict[str, float]:
        """Return what is logged of the last iteration."""
        return self._scalars

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Return the generations since the last call."""
        return self._log.take()

    def score(self) -> float | None:
        """Return what theta climbs: the mean fitness of the members around it."""
        return self._told.get("Population/fitness_mean", -math.inf)

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        self.members.interrupt(forget=forget)
        self.episodes.interrupt()

    @torch.no_grad()
    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's theta, once; what follows from it each draws and computes for itself."""
        for parameter in self._parameters:
            first_process_decides(parameter)
        self.evolution.theta.copy_(flatten(self._parameters))
        self._write_members()

    # --- state

    def memory(self) -> dict[str, list[Any]]:
        """Return the master and the stacked members."""
        return {"networks": [self.actor, self.members.policies]}

    def parts(self) -> dict[str, Part]:
        """Return everything beside the master that a resumed run needs; members follow from seed and number."""
        if self.members is None:
            return {"clock": Part(self.clock)}
        return {
            "clock": Part(self.clock),
            "evolution": Part(self.evolution),
            "told": Part(Held(lambda: self._told, self._load_told)),
            "episodes": Part(self.episodes, per_env=True),
            **self.members.parts(),
        }

    def _load_told(self, state: dict[str, float]) -> None:
        """Restore what is logged of the last generation."""
        self._told = dict(state)

    def save(self) -> dict[str, Any]:
        """Return master and parts."""
        states = part_states(self.parts())
        return {"actor_state_dict": self.actor.state_dict(), "num_envs": self._num_envs, "parts": states}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load the master and, if everything is asked for, the population around it."""
        self.actor.load_state_dict(loaded_dict["actor_state_dict"], strict=strict)
        if self.members is None or not (load_cfg is None or load_cfg.get("optimizer", False)):
            return True
        self.evolution.theta.copy_(flatten(self._parameters))
        states = loaded_dict.get("parts", {})
        number = len(states.get("evolution", {}).get("theta", self.evolution.theta))
        if number != len(self.evolution.theta):
            raise UserError("the checkpoint holds a network of another size: name the agent it was trained with")
        # Note: the checkpoint of a divided population has the environments of the first process, and its members'
        same = "columns" in states and self.members.shares(states["columns"]["agent_ids"])
        load_parts(self.parts(), states, same_envs=same)
        self._write_members()
        return True


def make_actor(cfg: dict[str, Any], obs: TensorDict, groups: dict, num_actions: int, bounds: Any) -> Any:
    """Return a deterministic MLP or recurrent actor with bounded actions.

    Args:
        cfg: Settings of the model.
        obs: An observation.
        groups: Groups of observations by set.
        num_actions: Number of actions.
        bounds: Bounds of the actions.
    """
    model_class, settings = resolve_class(cfg)
    kind = LATENT_MODELS.get(model_class.__name__)
    if kind is None:
        raise UserError(f"{model_class.__name__} cannot be a member of a population: use MLPModel or RNNModel")
    settings["distribution_cfg"] = {"class_name": BoundedOutput, "bounds": bounds}
    return kind(obs, groups, "actor", num_actions, **settings)
