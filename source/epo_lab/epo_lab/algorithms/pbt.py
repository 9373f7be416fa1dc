"""Population-based training: policies with networks and settings of their own, each on its share of the environments.

Every policy is an :class:`~epo_lab.algorithms.on_policy.epo.EPO` with one agent, which is PPO. They learn one after the
other; now and then the worst go on with the weights of the best, and their settings mutate
(``epo_lab/population/pbt.py`` has the rule).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.keys import BROKEN, LAST_EPISODE, LOG, TIME_OUTS
from epo_lab.base.options import ROOT, build
from epo_lab.models.hidden import HiddenStates
from epo_lab.population.assignment import assign_agents, check_division
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import FitnessTracker
from epo_lab.population.pbt import PbtOptions, PbtRule

from .base import Algorithm, Log, Part, load_parts, part_states
from .meters import fitness_quantiles, last_episodes, master_score
from .on_policy.construct import construct
from .on_policy.epo import EPO
from .on_policy.options import EpoOptions, split_options

DEFAULT_POLICIES = 8
CHANGES = "pbt"
"""Kind of records: every change."""


@dataclass
class PbtAlgorithmOptions(EpoOptions):
    """Keyword arguments of :class:`PBT`: those of its policies, and those of the changes."""

    pbt: PbtOptions = field(default_factory=PbtOptions)


def check_settings(settings: dict[str, Any], *, several_processes: bool) -> PbtOptions:
    """Return the settings of the population; raise a :class:`UserError` if PBT cannot run with what it was given.

    Args:
        settings: Settings of the algorithm.
        several_processes: Whether this is one of several processes.
    """
    if several_processes:
        raise UserError("--agent pbt runs in one process: leave torch.distributed.run out")
    if settings.get("rnd_cfg") or settings.get("symmetry_cfg"):
        raise UserError("RND and symmetry are not supported with more than one agent: use --agent ppo")
    pbt = build(PbtOptions, settings.get("pbt", {}), f"{ROOT}.pbt")
    for name in pbt.mutated:
        if name in settings and settings[name] is None:
            raise UserError(
                f"{ROOT}.pbt.mutated: {name} has no value that could mutate: leave it out, or set {ROOT}.{name}"
            )
    return pbt


class Share:
    """What a policy must know of the environments that are its own."""

    def __init__(self, env: VecEnv, num_envs: int) -> None:
        """Take the whole environment and the number of those."""
        self.num_envs, self.num_actions, self.device = num_envs, env.num_actions, env.device
        self.max_episode_length, self.cfg = env.max_episode_length, env.cfg


class PolicyPool:
    """All policies as a genome: a row holds the settings that mutate; weights are inherited."""

    def __init__(self, policies: list[EPO], names: Sequence[str]) -> None:
        """Take the policies and the names of the settings."""
        self._policies, self.names = policies, list(names)

    def read(self, slots: Sequence[int] | None = None) -> torch.Tensor:
        """Return the settings of some policies, or of all, as numbers. Shape is (n, number of settings)."""
        chosen = range(len(self._policies)) if slots is None else slots
        rows = [[float(value) for value in self.settings(slot).values()] for slot in chosen]
        return torch.tensor(rows, dtype=torch.float64)

    def write(self, slots: Sequence[int], rows: torch.Tensor) -> None:
        """Set the settings of some policies; counts stay whole numbers."""
        for slot, row in zip(slots, rows.tolist(), strict=True):
            old = self.settings(slot)
            new = {
                name: round(value) if isinstance(old[name], int) else value
                for name, value in zip(self.names, row, strict=True)
            }
            self.set(slot, new)

    def inherit(self, slot: int, parents: Sequence[int]) -> None:
        """Let a policy go on with the networks, normalisers, optimizer and learning rate of its first parent."""
        source, target = self._policies[parents[0]], self._policies[slot]
        if source is target:
            return
        content = copy.deepcopy(source.save())
        learned = {name for name, part in source.parts().items() if part.learned}
        content["parts"] = {name: state for name, state in content["parts"].items() if name in learned}
        settings = self.settings(slot)
        target.load(content, None, True)
        target.learning_rate = source.learning_rate
        self.set(slot, settings)
        dones = torch.ones(target.storage.num_envs, device=target.device)
        with torch.inference_mode():
            target.actor.reset(dones)
            target.critic.reset(dones)

    def swap(self, first: int, second: int) -> None:
        """Let two policies change places; there is no master among them, so nobody asks for it."""
        self._policies[first], self._policies[second] = self._policies[second], self._policies[first]

    def settings(self, slot: int) -> dict[str, Any]:
        """Return the settings of a policy that mutate."""
        return {name: getattr(self._holder(slot, name), name) for name in self.names}

    def set(self, slot: int, settings: dict[str, Any]) -> None:
        """Change settings of a policy."""
        policy = self._policies[slot]
        for name, value in settings.items():
            setattr(self._holder(slot, name), name, value)
        policy.settings_changed()
        for group in policy.optimizer.param_groups:
            group["lr"] = policy.learning_rate

    def _holder(self, slot: int, name: str) -> Any:
        policy = self._policies[slot]
        for holder in (policy, policy.options):
            if hasattr(holder, name):
                return holder
        raise UserError(f"{ROOT}.pbt.mutated: a policy has no setting '{name}'")


class PBT(Algorithm):
    """A population of independent PPO policies, with the interface that rsl_rl's runner takes."""

    def __init__(
        self,
        policies: list[EPO],
        agent_ids: torch.Tensor,
        options: EpoOptions,
        pbt: PbtOptions,
        seed: int,
        device: str,
    ) -> None:
        """Create the population; all settings mutate once.

        Args:
            policies: The policies, each made for its share of the environments.
            agent_ids: Policy of every environment.
            options: Settings that a population has in common: its size and its fitness.
            pbt: Settings of the changes.
            seed: Seed of everything the population draws.
            device: Device of the networks.
        """
        self.policies, self.device = policies, device
        self.options = options
        self.clock = Clock()
        self.agent_ids = torch.zeros_like(agent_ids, device=device)
        self._share_out(agent_ids)
        self.fitness = FitnessTracker(
            self.agent_ids,
            len(policies),
            source=options.fitness.source,
            min_coverage=1.0,
            min_episodes=options.fitness.min_episodes,
        )
        self.genome = PolicyPool(policies, list(pbt.mutated))
        self.evolution = PbtRule(pbt, len(policies), seed)
        self._log = Log(CHANGES)
        self._scalars: dict[str, float] = {}
        self._last_episode: dict[str, torch.Tensor] = {}
        for slot in range(len(policies)):
            self.genome.set(slot, self.evolution.mutate(self.genome.settings(slot)))

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> PBT:
        """Build all policies from a runner's settings."""
        settings = copy.deepcopy(cfg["algorithm"])
        pbt = check_settings(settings, several_processes=bool(cfg.get("multi_gpu")))
        settings.pop("pbt", None)
        options, _ = split_options({name: value for name, value in settings.items() if name != "class_name"})
        number = options.num_agents or DEFAULT_POLICIES
        fits = env.num_envs >= number and (options.allow_uneven or env.num_envs % number == 0)
        seed = int(cfg.get("seed") or 0)
        ids = torch.zeros(env.num_envs, dtype=torch.long)
        if fits:
            ids = assign_agents(env.num_envs, number, seed, allow_uneven=options.allow_uneven)
        single = settings | {"class_name": "epo_lab.algorithms:EPO", "num_agents": 1}
        single.pop("fitness", None)
        policies = []
        for index in range(number if fits else 1):
            columns = (ids == index).nonzero().flatten().to(env.device)
            own = {**cfg, "algorithm": copy.deepcopy(single), "seed": seed + index}
            share: Any = Share(env, len(columns))
            policy = construct(obs[columns], share, own, device)
            policy.scalars_in_extras = False
            policies.append(policy)
        return PBT(policies, ids, options, pbt, seed, device)

    def _share_out(self, agent_ids: torch.Tensor) -> None:
        """Note whose each environment is."""
        self.agent_ids.copy_(agent_ids)
        self.columns = [(agent_ids == index).nonzero().flatten().to(self.device) for index in range(len(self.policies))]
        self._order = torch.argsort(torch.cat(self.columns))

    @property
    def num_members(self) -> int:  # type: ignore[override]
        """Number of policies."""
        return len(self.policies)

    @property
    def _only_plays(self) -> bool:
        """Whether the environments are too few, or not divisible, so that there is one policy for all."""
        return len(self.policies) == 1

    # --- what the runner calls

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        """Mean learning rate."""
        return sum(policy.learning_rate for policy in self.policies) / len(self.policies)

    def env_members(self) -> list[int]:
        """Return the member of each environment."""
        return self.agent_ids.tolist()

    def policy(self, member: int = 0) -> Any:
        """Return the network of the policy that is best, or next best, and so on."""
        return self.policies[self.evolution.order(self.objectives())[member]].policy()

    def train_mode(self) -> None:
        """Prepare for training; this is where policies that cannot share the environments are refused."""
        number = self.options.num_agents or DEFAULT_POLICIES
        check_division(len(self.agent_ids), number, allow_uneven=self.options.allow_uneven)
        for policy in self.policies:
            policy.train_mode()

    def eval_mode(self) -> None:
        """Prepare for playing."""
        for policy in self.policies:
            policy.eval_mode()

    def broadcast_parameters(self) -> None:
        """Nothing: there is one process."""

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample an action for every environment from its policy."""
        parts = [policy.act(obs[columns]) for policy, columns in zip(self.policies, self.columns, strict=True)]
        return torch.cat(parts)[self._order]

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Record one step."""
        self.fitness.step(rewards, dones, extras)
        self._last_episode = extras.get(LAST_EPISODE, {})
        storage = self.policies[0].storage
        if self.scalars_in_extras and self._scalars and storage.step == storage.num_transitions_per_env - 1:
            extras[LOG] = {**extras.get(LOG, {}), **self._scalars}
        for policy, columns in zip(self.policies, self.columns, strict=True):
            own = {name: extras[name].to(self.device)[columns] for name in (TIME_OUTS, BROKEN) if name in extras}
            policy.process_env_step(obs[columns], rewards[columns], dones[columns], own)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute targets and advantages."""
        for policy, columns in zip(self.policies, self.columns, strict=True):
            policy.compute_returns(obs[columns])

    def learn(self) -> dict[str, float]:
        """Let all policies learn, one after the other."""
        losses = [policy.update() for policy in self.policies]
        first = self.policies[0].clock
        self.clock.iterations += 1
        self.clock.steps = first.steps
        self.clock.gradient_steps = sum(policy.clock.gradient_steps for policy in self.policies)
        return {name: sum(loss[name] for loss in losses) / len(losses) for name in losses[0]}

    def evolve(self) -> None:
        """Change the worst policies if it is time, and measure the iteration."""
        objectives = self.objectives()
        self.evolution.note(objectives.tolist())
        if self.evolution.due(self.clock):
            generation = self.evolution.propose(self.fitness.compute(), self.genome, self.clock)
            if generation is not None:
                apply(generation, self.genome)
                taken = [child.slot for child in generation.children if child.parents[0] != child.slot]
                if taken:
                    self.fitness.restart(taken)
                self._log.add(CHANGES, generation.record)
        self._scalars = self._measure()

    def objectives(self) -> torch.Tensor:
        """Return the objectives of all policies; NaN where an environment has not finished an episode yet."""
        return self.fitness.compute().certain()

    # --- what others ask for

    def scalars(self) -> dict[str, float]:
        """Return what is logged of the last iteration: the best policy is the master."""
        return self._scalars

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Return the changes since the last call."""
        return self._log.take()

    def score(self) -> float | None:
        """Return how good the best policy is."""
        return master_score(self._scalars, self.options.fitness)

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        self.fitness.interrupt(forget=forget)
        for policy in self.policies:
            policy.interrupt(forget=forget)

    def _measure(self) -> dict[str, float]:
        objectives = self.objectives()
        best = self.evolution.order(objectives)[0]
        own = self.policies[best].scalars()
        values = {tag: own[tag] for tag in ("Master/return", "Master/episode_length") if tag in own}
        values |= last_episodes(self._last_episode, self.columns[best])
        known = objectives[~objectives.isnan()]
        if len(known):
            values["Master/fitness"] = float(known.max())
        values |= fitness_quantiles(objectives) | self.evolution.scalars()
        means = self.genome.read().mean(dim=0).tolist()
        values |= {f"Settings/{name}": mean for name, mean in zip(self.genome.names, means, strict=True)}
        values["Guard/skipped_updates"] = float(sum(policy.guard.skipped for policy in self.policies))
        return values

    # --- state

    def parts(self) -> dict[str, Part]:
        """Return everything that a resumed run needs."""
        models = [model for policy in self.policies for model in (policy.actor, policy.critic)]
        return {
            "clock": Part(self.clock),
            "policies": Part(_Policies(self)),
            "fitness": Part(self.fitness, per_env=True),
            "evolution": Part(self.evolution),
            "hidden": Part(HiddenStates(models), per_env=True),
        }

    def save(self) -> dict[str, Any]:
        """Return the best policy, which any command can load, and all of them for a run that goes on."""
        best = self.policies[self.evolution.order(self.objectives())[0]]
        return best.save() | {"parts": part_states(self.parts())}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load a checkpoint: all policies of one of this kind, else the same weights into all."""
        states = loaded_dict.get("parts", {})
        whole = load_cfg is None or load_cfg.get("optimizer", False)
        # a few environments are enough to play the best
        if "policies" not in states or not whole or self._only_plays:
            alone = {name: value for name, value in loaded_dict.items() if name != "parts"}
            loaded = [policy.load(alone, load_cfg, strict) for policy in self.policies]
            return all(loaded)
        load_parts(self.parts(), states, same_envs=len(states["policies"]["agent_ids"]) == len(self.agent_ids))
        return True


class _Policies:
    """All policies with their settings, as a part of a checkpoint."""

    def __init__(self, population: PBT) -> None:
        self._of = population

    def state_dict(self) -> dict[str, Any]:
        """Return whose each environment is, and every policy."""
        pool = self._of.genome
        return {
            "agent_ids": self._of.agent_ids.cpu(),
            "saved": [policy.save() | {"rate": policy.learning_rate} for policy in self._of.policies],
            "settings": [pool.settings(slot) for slot in range(len(self._of.policies))],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        population, number = self._of, len(state["saved"])
        if number != len(population.policies):
            raise UserError(f"the checkpoint has {number} policies: set agent.algorithm.num_agents={number}")
        if len(state["agent_ids"]) == len(population.agent_ids):
            population._share_out(state["agent_ids"].cpu())
        for slot, own in enumerate(state["saved"]):
            policy = population.policies[slot]
            policy.load(own, None, True)
            policy.learning_rate = own["rate"]
            population.genome.set(slot, state["settings"][slot])
