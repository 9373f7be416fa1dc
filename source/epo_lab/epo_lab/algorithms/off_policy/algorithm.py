"""What all off-policy algorithms share: act, store, learn from the replay; under rsl_rl's runner interface."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.algorithms.base import Algorithm, Held, Part, load_parts, part_states
from epo_lab.algorithms.meters import EpisodeMeter
from epo_lab.base.clock import Clock
from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.keys import BROKEN, FINAL_OBS, LOG, TIME_OUTS
from epo_lab.base.memory import gigabytes
from epo_lab.base.processes import first_process_decides, rank, world_size
from epo_lab.models.squashed import BoundedOutput
from epo_lab.population.fitness import FitnessTracker
from epo_lab.storage.replay import Replay

from .learner import Learner
from .options import MOST_SAVED, ReplayLearningOptions
from .return_scale import ReturnScale


class Exploration(Protocol):
    """Noise of the environments."""

    def draw(self) -> torch.Tensor:
        """Return the numbers of the next step."""
        ...

    def end_episodes(self, dones: torch.Tensor) -> None:
        """Take notice of episodes that ended."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore it."""


class OffPolicy(Algorithm):
    """One policy that learns from a replay of its own transitions."""

    options_class: ClassVar[type[ReplayLearningOptions]]
    """Dataclass of its options."""
    output_class: ClassVar[type[BoundedOutput]]
    """Output of its actor."""
    learner_class: ClassVar[type[Learner]]
    """What takes its gradient steps."""

    def __init__(
        self,
        learner: Learner,
        replay: Replay,
        exploration: Exploration,
        options: ReplayLearningOptions,
        *,
        seed: int,
        device: str,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Create the algorithm; :meth:`construct_algorithm` is how a runner does it.

        Args:
            learner: Takes the gradient steps.
            replay: Keeps the transitions.
            exploration: Noise of the environments.
            options: Options.
            seed: Seed of this process's draws.
            device: Device of the networks.
            notes: Lines that a user should read when training begins.
        """
        self.learner, self.replay, self.exploration, self.options = learner, replay, exploration, options
        self.actor, self.critic = learner.actor, learner.critic
        self.device, self._seed, self._notes = device, seed, notes
        self.learning_rate = options.learning_rate
        self.clock = Clock()
        ids = torch.zeros(replay.num_envs, dtype=torch.long, device=device)
        fitness = options.fitness
        self.fitness = FitnessTracker(
            ids, 1, source=fitness.source, min_coverage=fitness.min_coverage, min_episodes=fitness.min_episodes
        )
        self.episodes = EpisodeMeter(ids)
        critic = options.critic
        self.return_scale = ReturnScale(replay.num_envs, options.gamma, critic.value_range, device)
        self._unit = torch.zeros(replay.num_envs, self.actor.distribution.output_dim, device=device)
        self._steps = 0
        """Control steps since the last update."""
        self._credit = 0.0
        """Gradient steps that are due, as a part of one."""
        self._begins_random = True
        self._scalars: dict[str, float] = {}

    @staticmethod
    def output_settings(options: Any) -> dict[str, Any]:
        """Return the settings of the actor's output. Default: it has none."""
        return {}

    @staticmethod
    @abstractmethod
    def make_exploration(options: Any, num_envs: int, num_actions: int, generator: torch.Generator) -> Exploration:
        """Return the noise of the environments."""

    @abstractmethod
    def explore(self, obs: TensorDict) -> torch.Tensor:
        """Return the unit actions with which the policy explores."""

    @classmethod
    def construct_algorithm(cls, obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> OffPolicy:
        """Build networks, replay and algorithm from a runner's settings."""
        from .construct import construct

        return construct(cls, obs, env, cfg, device)

    def train_mode(self) -> None:
        """Prepare for training; this is where the replay takes its memory, or is refused."""
        self.actor.train()
        self.critic.train()
        if self.replay.allocated and self.replay.size:
            return
        lines = [*self._notes, str(self.replay)]
        if not self._saves_replay:
            lines.append(
                f"checkpoints leave the replay out ({gigabytes(self.replay.num_bytes)}): a resumed run fills a new one"
                " first; agent.algorithm.replay.save=true keeps it"
            )
        if self.clock.steps:
            count = max(self.options.warmup_steps, 1)
            lines.append(f"no replay to go on with: {count:,} transitions are collected before learning goes on")
        if rank() == 0:
            print("\n".join(lines))
        self.replay.allocate()

    def eval_mode(self) -> None:
        """Prepare for playing."""
        self.actor.eval()
        self.critic.eval()

    # --- roll-out

    @property
    def warming_up(self) -> bool:
        """Whether actions are random, because the policy knows nothing yet."""
        steps = self.clock.steps + self._steps
        return self._begins_random and steps * self.replay.num_envs < self.options.warmup_steps

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Store what the environments see, and return an action for each."""
        self.replay.observe(obs)
        if self.warming_up:
            self._unit.uniform_(-1.0, 1.0, generator=self.learner.generator)
        else:
            self._unit.copy_(self.explore(obs))
        return self.actor.distribution.to_env(self._unit)

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Store the rest of the step; fitness sees raw rewards, learning sees scaled ones."""
        self.fitness.step(rewards, dones, extras)
        self.episodes.step(rewards, dones, extras)
        if self.options.scale_rewards:
            self.return_scale.step(rewards, dones)
        ends = extras.get(TIME_OUTS), extras.get(FINAL_OBS), extras.get(BROKEN)
        self.replay.add(self._unit, rewards, dones, *ends, time=self.clock.steps + self._steps)
        self.exploration.end_episodes(dones)
        self._steps += 1
        if self.scalars_in_extras and self._scalars:
            extras[LOG] = {**extras.get(LOG, {}), **self._scalars}

    def compute_returns(self, obs: TensorDict) -> None:
        """Store what came after the last step: values of it are what the last steps lead to."""
        self.replay.observe(obs)

    # --- update

    def learn(self) -> dict[str, float]:
        """Take the gradient steps that are due."""
        self.take_in()
        if self.replay.num_transitions >= self.options.warmup_steps:
            self._credit += self.options.updates_per_step * self._steps
        for _ in range(int(self._credit)):
            self.gradient_step()
        self._credit -= int(self._credit)
        return self.end_iteration()

    def take_in(self) -> None:
        """Normalise and scale by what the last steps have shown."""
        newest = self.replay.newest(self._steps)
        self.actor.update_normalization(newest)
        self.critic.update_normalization(newest)
        if self.options.scale_rewards:
            self.return_scale.merge()

    def end_iteration(self) -> dict[str, float]:
        """Count the iteration, and return the means of the losses."""
        self.clock.iterations += 1
        self.clock.steps += self._steps
        self._steps = 0
        losses = self.learner.meter.take()
        self._scalars = self._measure()
        return losses

    def gradient_step(self) -> None:
        """Draw a batch and learn from it."""
        options = self.options
        batch = self.replay.sample(options.batch_size, options.n_step, options.gamma)
        self.clock.gradient_steps += 1
        turn = self.clock.gradient_steps % options.policy_delay == 0
        self.learner.update(batch, self.return_scale.factor, with_policy=turn)

    def _measure(self) -> dict[str, float]:
        """Turn all meters into floats, and stop if too many updates were not finite."""
        values = self.episodes.take()
        fitness = float(self.fitness.compute().values[0])
        if not math.isnan(fitness):
            values["Master/fitness"] = fitness
        steps = self.learner.steps().values()
        counts = torch.stack([count for step in steps for count in (step.skipped, step.in_a_row)]).tolist()
        if max(counts[1::2]) >= self.options.max_skipped_updates:
            raise NonFiniteUpdateError(
                f"{max(counts[1::2]):.0f} gradient steps in a row were not finite (iteration {self.clock.iterations})"
            )
        values["Guard/skipped_updates"] = sum(counts[::2])
        values["Replay/transitions"] = float(self.replay.num_transitions)
        values["Replay/age"] = self.replay.mean_age(self.clock.steps)
        values["Replay/reward_factor"] = float(self.return_scale.factor)
        return values

    # --- what others ask for

    def policy(self, member: int = 0) -> Any:
        """Return the actor."""
        return self.actor

    def scalars(self) -> dict[str, float]:
        """Return what is logged of the last iteration."""
        return self._scalars

    def score(self) -> float | None:
        """Return how good the policy is."""
        return self._scalars.get("Master/fitness", -float("inf"))

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        self.fitness.interrupt(forget=forget)
        self.episodes.interrupt()
        self.return_scale.interrupt()
        if self.replay.allocated:
            self.replay.cut()

    # --- state

    @property
    def _saves_replay(self) -> bool:
        """Whether checkpoints keep the replay; that of one process would not do for several."""
        wanted = self.options.replay.save
        fits = self.replay.num_bytes < MOST_SAVED if wanted is None else wanted
        return fits and world_size() == 1

    def memory(self) -> dict[str, list[Any]]:
        """Return networks, optimizers and replay."""
        networks = [self.actor, *self.learner.modules().values()]
        optimizers = [step.optimizer for step in self.learner.steps().values()]
        return {"networks": networks, "optimizer": optimizers, "replay": [self.replay]}

    def parts(self) -> dict[str, Part]:
        """Return everything beside the policy that a resumed run needs."""
        parts = {
            "clock": Part(self.clock),
            "draws": Part(Held(self._draws_state, self._load_draws)),
            "fitness": Part(self.fitness, per_env=True),
            "episodes": Part(self.episodes, per_env=True),
            "exploration": Part(self.exploration, per_env=True),
            "return_scale": Part(self.return_scale, learned=True),
            **self.learner.parts(),
        }
        if self._saves_replay:
            parts["replay"] = Part(self.replay, per_env=True, heavy=True)
        return parts

    def _draws_state(self) -> dict[str, Any]:
        """Return the generator of this process, and the gradient steps that are due."""
        return {"generator": self.learner.generator.get_state(), "credit": self._credit}

    def _load_draws(self, state: dict[str, Any]) -> None:
        """Restore steps and, in the process whose it is, the generator; others go on with new numbers."""
        self._credit = state["credit"]
        if rank() == 0:
            self.learner.generator.set_state(state["generator"].cpu())
        else:
            self.learner.generator.manual_seed(self._seed + 7919 * self.clock.iterations)

    def save(self) -> dict[str, Any]:
        """Return the policy and the parts."""
        states = part_states(self.parts())
        return {"actor_state_dict": self.actor.state_dict(), "num_envs": self.replay.num_envs, "parts": states}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load the policy and, if everything is asked for, the parts."""
        actor = loaded_dict["actor_state_dict"]
        if actor.keys() != self.actor.state_dict().keys() and strict:
            raise UserError("the checkpoint holds a policy of another kind: name the agent that it was trained with")
        self.actor.load_state_dict(actor, strict=strict)
        if load_cfg is None or load_cfg.get("optimizer", False):
            states = loaded_dict.get("parts", {})
            load_parts(self.parts(), states, same_envs=self.has_envs_of(loaded_dict))
            # a new run that begins with a trained policy explores with it
            self._begins_random = "clock" in states
        return True

    def has_envs_of(self, loaded_dict: dict[str, Any]) -> bool:
        """Return whether a checkpoint has as many environments as there are here."""
        return loaded_dict.get("num_envs") == self.replay.num_envs

    @torch.no_grad()
    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's networks."""
        for module in (self.actor, *self.learner.modules().values()):
            for value in (*module.parameters(), *module.buffers()):
                first_process_decides(value)
