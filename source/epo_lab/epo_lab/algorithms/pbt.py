"""Population-based training: policies with networks and settings of their own, each on its share of the environments.

Every policy is an :class:`~epo_lab.algorithms.epo.EPO` with one agent, which is PPO. They learn one after the other;
now and then the worst go on with the weights of the best, and their settings mutate (``epo_lab/population/pbt.py``).
"""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, fields
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.base.errors import UserError
from epo_lab.base.keys import BROKEN
from epo_lab.population.assignment import assign_agents, check_division
from epo_lab.population.fitness import FitnessTracker
from epo_lab.population.pbt import Change, PbtOptions, decide, mutate
from epo_lab.runner.records import Records

from .construct import construct
from .epo import EPO
from .options import EpoOptions, split_options

DEFAULT_POLICIES = 8
PBT_NAMES = tuple(option.name for option in fields(PbtOptions))


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
    pbt = PbtOptions(**{name: settings[name] for name in PBT_NAMES if name in settings})
    for name in pbt.pbt_mutated:
        if name in settings and settings[name] is None:
            raise UserError(
                f"pbt_mutated: {name} has no value that could mutate: leave it out, or set agent.algorithm.{name}"
            )
    return pbt


class Share:
    """What a policy must know of the environments that are its own."""

    def __init__(self, env: VecEnv, num_envs: int) -> None:
        """Take the whole environment and the number of those."""
        self.num_envs, self.num_actions, self.device = num_envs, env.num_actions, env.device
        self.max_episode_length, self.cfg = env.max_episode_length, env.cfg


class PBT:
    """A population of independent PPO policies, with the interface that rsl_rl's runner takes."""

    lineage_name = "pbt.jsonl"
    """File of the run folder that names every change."""
    rnd = None

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
        self.options, self.pbt = options, pbt
        self.agent_ids = torch.zeros_like(agent_ids, device=device)
        self._share_out(agent_ids)
        self.fitness = FitnessTracker(
            self.agent_ids,
            len(policies),
            source=options.fitness,
            mode=options.fitness_mode,
            min_coverage=1.0,
            min_episodes=options.fitness_min_episodes,
        )
        self._last_best = 0
        self.iteration, self.checks, self.events = 0, 0, 0
        self.lineage = Records()
        self._generator = torch.Generator().manual_seed(seed)
        self._changed_at = [-math.inf] * len(policies)
        self._reached = [-math.inf] * len(policies)
        self._checked_at = 0
        self.metrics = PbtMetrics(self)
        for policy in policies:
            self._set(policy, mutate(self.settings_of(policy), pbt, self._generator))

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> PBT:
        """Build all policies from a runner's settings."""
        settings = copy.deepcopy(cfg["algorithm"])
        pbt = check_settings(settings, several_processes=bool(cfg.get("multi_gpu")))
        settings = {name: value for name, value in settings.items() if name not in PBT_NAMES}
        options, _ = split_options({name: value for name, value in settings.items() if name != "class_name"})
        number = options.num_agents or DEFAULT_POLICIES
        fits = env.num_envs >= number and (options.allow_uneven or env.num_envs % number == 0)
        seed = int(cfg.get("seed") or 0)
        ids = torch.zeros(env.num_envs, dtype=torch.long)
        if fits:
            ids = assign_agents(env.num_envs, number, options.agent_assignment, seed, allow_uneven=options.allow_uneven)
        single = settings | {"class_name": "epo_lab.algorithms:EPO", "num_agents": 1, "fitness": "return"}
        policies = []
        for index in range(number if fits else 1):
            columns = (ids == index).nonzero().flatten()
            own = {**cfg, "algorithm": copy.deepcopy(single), "seed": seed + index}
            policies.append(construct(obs[columns], Share(env, len(columns)), own, device))
        return PBT(policies, ids, options, pbt, seed, device)

    def _share_out(self, agent_ids: torch.Tensor) -> None:
        """Note whose each environment is."""
        self.agent_ids.copy_(agent_ids)
        self.columns = [(agent_ids == index).nonzero().flatten().to(self.device) for index in range(len(self.policies))]
        self._order = torch.argsort(torch.cat(self.columns))

    @property
    def _only_plays(self) -> bool:
        """Whether the environments are too few, or not divisible, so that there is one policy for all."""
        return len(self.policies) == 1

    # --- what the runner calls

    @property
    def learning_rate(self) -> float:
        """Mean learning rate."""
        return sum(policy.learning_rate for policy in self.policies) / len(self.policies)

    def get_policy(self) -> Any:
        """Return the network of the best policy."""
        return self.policies[self.best].get_policy()

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
        self.metrics.step(extras, last=self.policies[0].storage.step == self._num_steps - 1)
        for policy, columns in zip(self.policies, self.columns, strict=True):
            own = {name: extras[name].to(self.device)[columns] for name in ("time_outs", BROKEN) if name in extras}
            policy.process_env_step(obs[columns], rewards[columns], dones[columns], own)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute targets and advantages."""
        for policy, columns in zip(self.policies, self.columns, strict=True):
            policy.compute_returns(obs[columns])

    def update(self) -> dict[str, float]:
        """Let all policies learn, then change the worst if it is time."""
        losses = [policy.update() for policy in self.policies]
        self.iteration += 1
        self.fitness.end_iteration()
        self._evolve()
        self.metrics.end_iteration()
        return {name: sum(loss[name] for loss in losses) / len(losses) for name in losses[0]}

    # --- evolution

    @property
    def steps(self) -> int:
        """Control steps per environment so far."""
        return self.iteration * self._num_steps

    @property
    def _num_steps(self) -> int:
        return self.policies[0].storage.num_transitions_per_env

    @property
    def best(self) -> int:
        """The policy with the best objective; as long as none is known, the one that was it before."""
        values = self.objectives()
        if not values.isnan().all():
            self._last_best = int(values.nan_to_num(nan=-math.inf).argmax())
        return self._last_best

    def objectives(self) -> torch.Tensor:
        """Return the objectives of all policies; NaN where an environment has not finished an episode yet."""
        fitness = self.fitness.compute()
        return fitness.values.masked_fill(~fitness.evaluated, math.nan)

    def settings_of(self, policy: EPO) -> dict[str, Any]:
        """Return the settings of a policy that mutate."""
        return {name: getattr(self._holder(policy, name), name) for name in self.pbt.pbt_mutated}

    def _evolve(self) -> None:
        objectives = self.objectives().tolist()
        self._reached = [max(old, new) for old, new in zip(self._reached, objectives, strict=True)]
        if self.steps < self._checked_at + self.pbt.pbt_interval_steps:
            return
        reached, self._reached = self._reached, [-math.inf] * len(self.policies)
        self._checked_at = self.steps
        if self.steps < self.pbt.pbt_initial_delay_steps:
            return
        ready = [self.steps - changed >= self.pbt.pbt_start_after_steps for changed in self._changed_at]
        changes = decide(objectives, reached, ready, self.pbt, self._generator)
        self.checks += 1
        if changes:
            self._apply(changes, objectives)

    def _apply(self, changes: list[Change], objectives: list[float]) -> None:
        """Change policies; none of them is one of the best, so that all take from what was there before."""
        before = {policy: self.settings_of(self.policies[policy]) for policy in range(len(self.policies))}
        record: dict[str, Any] = {"iteration": self.iteration, "objectives": objectives, "changes": []}
        for change in changes:
            target, source = self.policies[change.policy], self.policies[change.weights_from]
            if source is not target:
                _copy_weights(source, target)
                self.fitness.restart([change.policy])
            new = mutate(before[change.settings_from], self.pbt, self._generator)
            self._set(target, new)
            self._changed_at[change.policy] = self.steps
            record["changes"].append(asdict(change) | {"settings": new})
        self.events += 1
        self.lineage.append(record)

    @staticmethod
    def _holder(policy: EPO, name: str) -> Any:
        for holder in (policy, policy.options):
            if hasattr(holder, name):
                return holder
        raise UserError(f"pbt_mutated: a policy has no setting '{name}'")

    def _set(self, policy: EPO, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self._holder(policy, name), name, value)
        policy.settings_changed()
        for group in policy.optimizer.param_groups:
            group["lr"] = policy.learning_rate

    # --- state

    def save(self) -> dict[str, Any]:
        """Return the best policy, which any command can load, and all of them for a run that goes on."""
        return self.policies[self.best].save() | {
            "pbt_state": {
                "policies": [policy.save() | {"rate": policy.learning_rate} for policy in self.policies],
                "settings": [self.settings_of(policy) for policy in self.policies],
                "agent_ids": self.agent_ids.cpu(),
                "fitness": self.fitness.state_dict(),
                "generator": self._generator.get_state(),
                **{name: getattr(self, name) for name in _COUNTERS},
            }
        }

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load a checkpoint: all policies of one of this kind, else the same weights into all."""
        state = loaded_dict.get("pbt_state")
        whole = load_cfg is None or load_cfg.get("optimizer", False)
        # a few environments are enough to play the best
        if state is None or not whole or self._only_plays:
            loaded = [policy.load(loaded_dict, load_cfg, strict) for policy in self.policies]
            return all(loaded)
        if len(state["policies"]) != len(self.policies):
            number = len(state["policies"])
            raise UserError(f"the checkpoint has {number} policies: set agent.algorithm.num_agents={number}")
        iterations = [
            policy.load(own, load_cfg, strict) for policy, own in zip(self.policies, state["policies"], strict=True)
        ]
        for policy, own, settings in zip(self.policies, state["policies"], state["settings"], strict=True):
            policy.learning_rate = own["rate"]
            self._set(policy, settings)
        for name in _COUNTERS:
            setattr(self, name, state[name])
        self._generator.set_state(state["generator"].cpu())
        ids = state["agent_ids"].cpu()
        if len(ids) == len(self.agent_ids):
            self._share_out(ids)
            self.fitness.load_state_dict(state["fitness"])
        return all(iterations)


def _copy_weights(source: EPO, target: EPO) -> None:
    """Let a policy go on as another one: its networks, normalisers, optimizer and learning rate."""
    content = copy.deepcopy(source.save())
    content.pop("population_state")
    target.load(content, None, True)
    target.learning_rate = source.learning_rate
    dones = torch.ones(target.storage.num_envs, device=target.device)
    with torch.inference_mode():
        target.actor.reset(dones)
        target.critic.reset(dones)


class PbtMetrics:
    """What is logged of the population: the best policy as the master, and how far the others are."""

    agents = None

    def __init__(self, algorithm: PBT) -> None:
        """Take the algorithm that is measured."""
        self._alg = algorithm
        self.values: dict[str, float] = {}
        self.emit_to_extras = True
        """Whether the last step of a roll-out carries the numbers in ``extras["log"]``, for rsl_rl's own runner."""
        self._last_episode: dict[str, torch.Tensor] = {}

    def step(self, extras: dict[str, Any], *, last: bool) -> None:
        """Take in one step; the last one of a roll-out carries the numbers to a runner that does not ask for them."""
        self._last_episode = extras.get("last_episode", {})
        if self.emit_to_extras and self.values and last:
            extras["log"] = {**extras.get("log", {}), **self.values}

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        return {"policies": [policy.metrics.state_dict() for policy in self._alg.policies]}

    def load_state_dict(self, state: dict[str, Any], *, running_episodes: bool) -> None:
        """Restore what :meth:`state_dict` returned, the sums of the running episodes only if these go on."""
        for policy, own in zip(self._alg.policies, state["policies"], strict=True):
            policy.metrics.load_state_dict(own, running_episodes=running_episodes)

    def end_iteration(self) -> None:
        """Turn everything into floats."""
        alg, best = self._alg, self._alg.best
        own = alg.policies[best].metrics.values
        values = {tag: own[tag] for tag in ("Master/return", "Master/episode_length") if tag in own}
        for name, last in self._last_episode.items():
            mean = float(last[alg.columns[best]].nanmean())
            if not math.isnan(mean):
                values[f"Master/{name}"] = mean
        objectives = alg.objectives()
        known = objectives[~objectives.isnan()]
        if len(known):
            values["Master/fitness"] = float(known.max())
            quantiles = torch.quantile(known, torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=known.dtype)).tolist()
            for name, value in zip(("min", "q25", "median", "q75", "max"), quantiles, strict=True):
                values[f"Population/fitness_{name}"] = value
        values["Generation/checks"], values["Generation/events"] = float(alg.checks), float(alg.events)
        settings = [alg.settings_of(policy) for policy in alg.policies]
        for name in alg.pbt.pbt_mutated:
            values[f"Settings/{name}"] = sum(own[name] for own in settings) / len(settings)
        values["Guard/skipped_updates"] = float(sum(policy.metrics.skipped_updates for policy in alg.policies))
        self.values = values


_COUNTERS = ("iteration", "checks", "events", "_changed_at", "_reached", "_checked_at", "_last_best")
