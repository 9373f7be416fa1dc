"""Population-based training: policies with networks and settings of their own, each on its share of the environments.

Every policy is an :class:`~epo_lab.algorithms.on_policy.epo.EPO` with one agent, which is PPO. They learn one after the
other; now and then the worst go on with the weights of the best, and their settings mutate
(``epo_lab/population/pbt.py`` has the rule).

Several processes divide the policies: each learns its own, without a word to the others. They put the fitness together,
decide all the same, and send weights from the process of the donor to that of the policy that takes them over.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch.utils._pytree import tree_map_only

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.keys import BROKEN, LAST_EPISODE, LOG, TIME_OUTS
from epo_lab.base.options import ROOT, build, without_class
from epo_lab.base.processes import (
    alone,
    gather_objects,
    mean_over_processes,
    object_of,
    receive_object,
    send_object,
    sum_over_processes,
    world_size,
)
from epo_lab.models.hidden import HiddenStates
from epo_lab.population.assignment import assign_agents, check_division, check_processes, own_slots
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import FitnessTracker
from epo_lab.population.pbt import PbtOptions, PbtRule

from .base import Algorithm, Held, Log, Part, load_parts, part_states
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


def check_settings(settings: dict[str, Any], num_processes: int) -> PbtOptions:
    """Return the settings of the population; raise a :class:`UserError` if PBT cannot run with what it was given.

    Args:
        settings: Settings of the algorithm.
        num_processes: Number of processes that divide the policies.
    """
    number = settings.get("num_agents") or DEFAULT_POLICIES
    check_processes(number, num_processes, "policies")
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

    def __init__(self, policies: list[EPO], names: Sequence[str], slots: range, number: int) -> None:
        """Create the pool.

        Args:
            policies: The policies of this process.
            names: Names of the settings.
            slots: Numbers of the policies of this process.
            number: Number of the policies of all processes.
        """
        self._policies, self.names = policies, list(names)
        self.slots, self._number = slots, number

    def owner(self, slot: int) -> int:
        """Return the process of a policy."""
        return slot // len(self.slots)

    def read(self, slots: Sequence[int] | None = None) -> torch.Tensor:
        """Return the settings of some policies, or of all, as numbers. Shape is (n, number of settings)."""
        table = torch.zeros(self._number, len(self.names), dtype=torch.float64)
        for slot in self.slots:
            table[slot] = torch.tensor([float(value) for value in self.settings(slot).values()], dtype=torch.float64)
        table = sum_over_processes(table.to(self._policies[0].device)).cpu()
        return table if slots is None else table[list(slots)]

    def write(self, slots: Sequence[int], rows: torch.Tensor) -> None:
        """Set the settings of some policies; counts stay whole numbers."""
        for slot, row in zip(slots, rows.tolist(), strict=True):
            if slot not in self.slots:
                continue
            old = self.settings(slot)
            new = {
                name: round(value) if isinstance(old[name], int) else value
                for name, value in zip(self.names, row, strict=True)
            }
            self.set(slot, new)

    def inherit(self, slot: int, parents: Sequence[int]) -> None:
        """Let a policy go on with the networks, normalisers, optimizer and learning rate of its first parent."""
        donor = parents[0]
        if donor == slot:
            return
        content: Any = self._learned(donor) if donor in self.slots else None
        if self.owner(donor) != self.owner(slot):
            if donor in self.slots:
                send_object(content, self.owner(slot))
            elif slot in self.slots:
                content = receive_object(self.owner(donor))
        if slot in self.slots:
            self._take_over(slot, content)

    def _learned(self, slot: int) -> dict[str, Any]:
        """Return copies of what a policy has learned, on the CPU if another process may take them."""
        policy = self._policies[slot - self.slots.start]
        content = copy.deepcopy(policy.save())
        learned = {name for name, part in policy.parts().items() if part.learned}
        content["parts"] = {name: state for name, state in content["parts"].items() if name in learned}
        content["rate"] = policy.learning_rate
        return content if world_size() == 1 else tree_map_only(torch.Tensor, torch.Tensor.cpu, content)

    def _take_over(self, slot: int, content: dict[str, Any]) -> None:
        target, settings = self._policies[slot - self.slots.start], self.settings(slot)
        target.load(content, None, True)
        target.learning_rate = content["rate"]
        self.set(slot, settings)
        dones = torch.ones(target.storage.num_envs, device=target.device)
        with torch.inference_mode():
            target.actor.reset(dones)
            target.critic.reset(dones)

    def swap(self, first: int, second: int) -> None:
        """Refuse: there is no master among the policies, so nobody asks for it."""
        raise NotImplementedError

    def settings(self, slot: int) -> dict[str, Any]:
        """Return the settings of a policy of this process that mutate."""
        return {name: getattr(self._holder(slot, name), name) for name in self.names}

    def set(self, slot: int, settings: dict[str, Any]) -> None:
        """Change settings of a policy of this process."""
        policy = self._policies[slot - self.slots.start]
        for name, value in settings.items():
            setattr(self._holder(slot, name), name, value)
        policy.settings_changed()
        for group in policy.optimizer.param_groups:
            group["lr"] = policy.learning_rate

    def _holder(self, slot: int, name: str) -> Any:
        policy = self._policies[slot - self.slots.start]
        for holder in (policy, policy.options):
            if hasattr(holder, name):
                return holder
        raise UserError(f"{ROOT}.pbt.mutated: a policy has no setting '{name}'")


class PBT(Algorithm):
    """A population of independent PPO policies, with the interface that rsl_rl's runner takes."""

    def __init__(
        self,
        policies: list[EPO],
        slots: range,
        number: int,
        agent_ids: torch.Tensor,
        options: EpoOptions,
        pbt: PbtOptions,
        seed: int,
        device: str,
    ) -> None:
        """Create the population; all settings mutate once.

        Args:
            policies: The policies of this process, each made for its share of the environments.
            slots: Their numbers.
            number: Number of the policies of all processes.
            agent_ids: Policy of every environment of this process.
            options: Settings that a population has in common: its size and its fitness.
            pbt: Settings of the changes.
            seed: Seed of everything the population draws.
            device: Device of the networks.
        """
        self.policies, self.slots, self.num_members, self.device = policies, slots, number, device
        self.options = options
        self.clock = Clock()
        self.agent_ids = torch.zeros_like(agent_ids, device=device)
        self._share_out(agent_ids)
        self.fitness = FitnessTracker(
            self.agent_ids,
            number,
            source=options.fitness.source,
            min_coverage=1.0,
            min_episodes=options.fitness.min_episodes,
        )
        self.genome = PolicyPool(policies, list(pbt.mutated), slots, number)
        self.evolution = PbtRule(pbt, number, seed)
        self._ranked = list(range(number))
        """Policies, best first, as all processes agreed when the last iteration ended."""
        self._saved: list[dict[str, Any]] | None = None
        """States of all policies that the others sent for a checkpoint."""
        self._log = Log(CHANGES)
        self._scalars: dict[str, float] = {}
        self._last_episode: dict[str, torch.Tensor] = {}
        # all begin with the same settings, and every process draws the mutations of all
        common = self.genome.settings(slots.start)
        for slot in range(number):
            mutated = self.evolution.mutate(common)
            if slot in slots:
                self.genome.set(slot, mutated)

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> PBT:
        """Build all policies from a runner's settings."""
        settings = copy.deepcopy(cfg["algorithm"])
        processes = cfg.get("multi_gpu") or {"global_rank": 0, "world_size": 1}
        pbt = check_settings(settings, processes["world_size"])
        settings.pop("pbt", None)
        options, _ = split_options(without_class(settings))
        number = options.num_agents or DEFAULT_POLICIES
        slots = own_slots(number, processes["global_rank"], processes["world_size"])
        # a few environments are enough to play the best; training checks this again
        if env.num_envs < len(slots) or (env.num_envs % len(slots) and not options.allow_uneven):
            number, slots = 1, range(processes["global_rank"], processes["global_rank"] + 1)
        first = slots.start
        # ranks share the population, whatever was added to their seeds
        seed = int(cfg.get("seed") or 0) - processes["global_rank"]
        ids = first + assign_agents(env.num_envs, len(slots), seed + first, allow_uneven=options.allow_uneven)
        single = settings | {"class_name": "epo_lab.algorithms:EPO", "num_agents": 1}
        single.pop("fitness", None)
        policies = []
        for slot in slots:
            columns = (ids == slot).nonzero().flatten().to(env.device)
            own = {**cfg, "algorithm": copy.deepcopy(single), "seed": seed + slot, "multi_gpu": None}
            part: Any = Share(env, len(columns))
            policy = construct(obs[columns], part, own, device)
            policy.scalars_in_extras = False
            policies.append(policy)
        return PBT(policies, slots, number, ids, options, pbt, seed, device)

    def _share_out(self, agent_ids: torch.Tensor) -> None:
        """Note whose each environment is."""
        self.agent_ids.copy_(agent_ids)
        self.columns = [(agent_ids == slot).nonzero().flatten().to(self.device) for slot in self.slots]
        self._order = torch.argsort(torch.cat(self.columns))

    @property
    def _only_plays(self) -> bool:
        """Whether the environments are too few, or not divisible, so that there is one policy for all."""
        return self.num_members == 1

    # --- what the runner calls

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        """Mean learning rate."""
        return sum(policy.learning_rate for policy in self.policies) / len(self.policies)

    def env_members(self) -> list[int]:
        """Return the member of each environment."""
        return self.agent_ids.tolist()

    def policy(self, member: int = 0) -> Any:
        """Return the network of the policy that is best, or next best, and so on; of this process's policies."""
        own = [slot for slot in self._best_first() if slot in self.slots]
        return self.policies[own[member] - self.slots.start].policy()

    def _best_first(self) -> list[int]:
        """Return the numbers of all policies; in several processes without asking the others."""
        return self.evolution.order(self.objectives()) if world_size() == 1 else self._ranked

    def train_mode(self) -> None:
        """Prepare for training; this is where policies that cannot share the environments are refused."""
        number = self.options.num_agents or DEFAULT_POLICIES
        check_division(len(self.agent_ids), number // world_size(), allow_uneven=self.options.allow_uneven)
        for policy in self.policies:
            policy.train_mode()

    def eval_mode(self) -> None:
        """Prepare for playing."""
        for policy in self.policies:
            policy.eval_mode()

    def broadcast_parameters(self) -> None:
        """Nothing: every process has policies of its own."""

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
        with alone():
            for policy, columns in zip(self.policies, self.columns, strict=True):
                policy.compute_returns(obs[columns])

    def learn(self) -> dict[str, float]:
        """Let all policies learn, one after the other."""
        with alone():
            losses = [policy.update() for policy in self.policies]
        first = self.policies[0].clock
        self.clock.iterations += 1
        self.clock.steps = first.steps
        self.clock.gradient_steps = sum(policy.clock.gradient_steps for policy in self.policies)
        means = [sum(loss[name] for loss in losses) / len(losses) for name in losses[0]]
        if world_size() > 1:
            means = mean_over_processes(torch.tensor(means, dtype=torch.float64, device=self.device)).tolist()
        return dict(zip(losses[0], means, strict=True))

    def evolve(self) -> None:
        """Change the worst policies if it is time, and measure the iteration."""
        objectives = self.objectives()
        self.evolution.note(objectives.tolist())
        if self.evolution.due(self.clock):
            # Note: all processes know the fitness and the settings of all, and draw alike, so each decides the same
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
        self._ranked = self.evolution.order(objectives)
        best = self._ranked[0]
        values: dict[str, float] = object_of(self.genome.owner(best), self._of_the_best(best))
        known = objectives[~objectives.isnan()]
        if len(known):
            values["Master/fitness"] = float(known.max())
        values |= fitness_quantiles(objectives) | self.evolution.scalars()
        means = self.genome.read().mean(dim=0).tolist()
        values |= {f"Settings/{name}": mean for name, mean in zip(self.genome.names, means, strict=True)}
        skipped = torch.tensor([sum(policy.guard.skipped for policy in self.policies)], device=self.device)
        values["Guard/skipped_updates"] = float(sum_over_processes(skipped))
        return values

    def _of_the_best(self, best: int) -> dict[str, float]:
        """Return what is logged of the best policy, in its process."""
        if best not in self.slots:
            return {}
        own = self.policies[best - self.slots.start].scalars()
        values = {tag: own[tag] for tag in ("Master/return", "Master/episode_length") if tag in own}
        return values | last_episodes(self._last_episode, self.columns[best - self.slots.start])

    # --- state

    def memory(self) -> dict[str, list[Any]]:
        """Return networks, optimizers and roll-outs of this process's policies."""
        each = [policy.memory() for policy in self.policies]
        return {part: [held[part] for held in each] for part in each[0]}

    def parts(self) -> dict[str, Part]:
        """Return everything that a resumed run needs."""
        models = [model for policy in self.policies for model in (policy.actor, policy.critic)]
        return {
            "clock": Part(self.clock),
            "policies": Part(Held(self._policies_state, self._load_policies)),
            "fitness": Part(self.fitness, per_env=True),
            "evolution": Part(self.evolution),
            "hidden": Part(HiddenStates(models), per_env=True),
        }

    def before_save(self) -> None:
        """Send the policies of all processes to the first, which writes the checkpoint."""
        if world_size() > 1:
            sent = gather_objects(tree_map_only(torch.Tensor, torch.Tensor.cpu, self._own_states()))
            self._saved = None if sent is None else [state for part in sent for state in part]

    def _own_states(self) -> list[dict[str, Any]]:
        return [
            policy.save() | {"rate": policy.learning_rate, "settings": self.genome.settings(slot)}
            for slot, policy in zip(self.slots, self.policies, strict=True)
        ]

    def save(self) -> dict[str, Any]:
        """Return the best policy, which any command can load, and all of them for a run that goes on."""
        parts = part_states(self.parts())
        best = parts["policies"]["saved"][self._best_first()[0]]
        self._saved = None
        return {name: value for name, value in best.items() if name != "rate"} | {"parts": parts}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load a checkpoint: all policies of one of this kind, else the same weights into all."""
        states = loaded_dict.get("parts", {})
        whole = load_cfg is None or load_cfg.get("optimizer", False)
        # a few environments are enough to play the best
        if "policies" not in states or not whole or self._only_plays:
            alone = {name: value for name, value in loaded_dict.items() if name != "parts"}
            loaded = [policy.load(alone, load_cfg, strict) for policy in self.policies]
            return all(loaded)
        ids = states["policies"]["agent_ids"]
        load_parts(self.parts(), states, same_envs=self.shares(ids))
        self._ranked = self.evolution.order(torch.full((self.num_members,), torch.nan))
        return True

    def _policies_state(self) -> dict[str, Any]:
        """Return whose each environment is, and every policy with its settings."""
        states = self._saved or self._own_states()
        return {
            "agent_ids": self.agent_ids.cpu(),
            "saved": [{name: value for name, value in state.items() if name != "settings"} for state in states],
            "settings": [state["settings"] for state in states],
        }

    def _load_policies(self, state: dict[str, Any]) -> None:
        """Restore the policies; a process takes its own."""
        number = len(state["saved"])
        if number != self.num_members:
            raise UserError(f"the checkpoint has {number} policies: set {ROOT}.num_agents={number}")
        if self.shares(state["agent_ids"]):
            self._share_out(state["agent_ids"].cpu())
        for slot, policy in zip(self.slots, self.policies, strict=True):
            own = state["saved"][slot]
            policy.load(own, None, True)
            policy.learning_rate = own["rate"]
            self.genome.set(slot, state["settings"][slot])

    def shares(self, agent_ids: torch.Tensor) -> bool:
        """Return whether environments with these policies are as many as here, and the same policies'."""
        return len(agent_ids) == len(self.agent_ids) and set(agent_ids.tolist()) == set(self.slots)
