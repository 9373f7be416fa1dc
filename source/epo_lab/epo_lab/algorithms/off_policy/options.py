"""Everything that can be chosen about the off-policy algorithms, with its default and what it means."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

from epo_lab.base.errors import UserError
from epo_lab.base.options import POSITIVE, ROOT, SHARE, Count, Positive, Rule, Weight, Whole, at_least, between, one_of
from epo_lab.population.fitness import FitnessOptions
from epo_lab.storage.replay import MOST_STEPS

from .exploration import SPREADS
from .losses import REDUCTIONS

MOST_SAVED = 2_000_000_000
"""Replays above this size [bytes] are not written to the disk unless asked for."""


def _are_bounds(value: object) -> bool:
    items = value if isinstance(value, list | tuple) else [value]
    pairs = [item if isinstance(item, list | tuple) else [0, item] for item in items]
    numbers = [number for pair in pairs for number in pair]
    if not numbers or any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
        return False
    return all(len(pair) == 2 and -math.inf < pair[0] < pair[1] < math.inf for pair in pairs)


Bounds = Annotated[object, Rule(_are_bounds, "a positive number, one an action, or a rising pair an action")]


@dataclass
class ReplayOptions:
    """The transitions that are learned from."""

    size: Annotated[int, at_least(1)] = 1_000_000
    """Transitions to keep, over all environments of a process. Default 1,000,000."""
    device: Annotated[str, one_of(("learner", "host"))] = "learner"
    """Where they are kept: ``learner`` (default, on the device of the networks) or ``host`` (in the machine's memory,
    which has more room and costs a copy at every step)."""
    dtype: Annotated[str, one_of(("float32", "bfloat16"))] = "float32"
    """Type of stored observations: ``float32`` (default) or ``bfloat16``, half the memory and three digits."""
    save: bool | None = None
    """Whether checkpoints keep them, in ``replay.pt``. Default None: if they take less than 2 GB. Without it a resumed
    run fills a new replay before it learns on."""


@dataclass
class CriticOptions:
    """What the Q functions predict."""

    atoms: Annotated[int, between(1, 1001)] = 101
    """Atoms of their distributions (C51). Default 101; 1 makes them scalar."""
    value_range: Positive = 5.0
    """The atoms lie between minus and plus this value, in units of the scaled reward. Default 5."""
    layer_norm: bool = True
    """Whether their hidden layers are layer-normalised. Default True."""


@dataclass
class ReplayLearningOptions:
    """What all off-policy algorithms have."""

    gamma: Annotated[float, between(0, 1)] = 0.99
    """Discount factor. Default 0.99."""
    n_step: Annotated[int, between(1, MOST_STEPS)] = 3
    """Most rewards that are summed before a value follows, 1 to 8. Default 3."""
    batch_size: Whole = 4096
    """Transitions of a gradient step. Default 4,096."""
    updates_per_step: Annotated[float, Rule(lambda n: 0 < n <= 1e6, "above 0 and at most 1e6")] = 4.0
    """Gradient steps of the critic for each control step of all environments together. Default 4; may be below 1."""
    policy_delay: Whole = 2
    """Gradient steps of the critic for each one of the policy. Default 2."""
    warmup_steps: Count = 10_000
    """Transitions with random actions, over all environments, before anything is learned. Default 10,000."""
    learning_rate: Positive = 3e-4
    """Learning rate of policy and critic. Default 3e-4."""
    weight_decay: Weight = 0.0
    """Weight decay (AdamW). Default 0."""
    max_grad_norm: Annotated[float | None, POSITIVE] = None
    """Largest norm of a gradient. Default None: any."""
    tau: Annotated[float, SHARE] = 0.005
    """How far the target networks follow in a gradient step. Default 0.005."""
    policy_q: Annotated[str, one_of(REDUCTIONS)] = "min"
    """What the policy climbs: the ``min`` (default), ``mean`` or ``first`` of the two Q functions."""
    scale_rewards: bool = True
    """Whether rewards are divided by the running scale of the return, so that ``value_range`` fits every task. Default
    True."""
    action_bounds: Bounds = None
    """Bounds of the actions: b for +-b, a number for every action, or a pair [low, high] for every action.
    Default None: the agent's ``clip_actions``, or 1."""
    replay: ReplayOptions = field(default_factory=ReplayOptions)
    critic: CriticOptions = field(default_factory=CriticOptions)
    fitness: FitnessOptions = field(default_factory=FitnessOptions)
    max_skipped_updates: Whole = 20
    """Gradient steps in a row that may be skipped as non-finite before the run stops. Default 20."""

    def check(self, num_envs: int, num_steps: int) -> None:
        """Raise a :class:`UserError` if values do not go together.

        Args:
            num_envs: Number of environments.
            num_steps: Control steps of a roll-out.
        """
        least = num_envs * max(num_steps, self.n_step)
        if self.replay.size < least:
            raise UserError(
                f"{ROOT}.replay.size must be at least {least:,}, one roll-out of {num_envs:,} environments,"
                f" not {self.replay.size:,}"
            )
        if self.warmup_steps > self.replay.size:
            raise UserError(
                f"{ROOT}.warmup_steps={self.warmup_steps} would never be over: the replay holds {self.replay.size}"
            )


@dataclass
class TemperatureOptions:
    """Weight alpha of the entropy."""

    initial: Positive = 0.01
    """First value. Default 0.01."""
    learned: bool = True
    """Whether it is adapted to ``target_entropy``. Default True."""
    learning_rate: Positive = 3e-4
    """Learning rate of its logarithm. Default 3e-4."""
    target_entropy: float = -0.5
    """Entropy to keep for each action dimension, of actions within (-1, 1). Default -0.5; SAC's paper has -1."""


@dataclass
class GaussianOptions:
    """Standard deviation of the policy, before its tanh."""

    init_std: Positive = 1.0
    """First value. Default 1."""
    log_std_min: Annotated[float, between(-20, 2)] = -5.0
    """Least logarithm. Default -5."""
    log_std_max: Annotated[float, between(-10, 5)] = 2.0
    """Largest logarithm. Default 2."""
    repeat: bool = False
    """Whether noise is repeated for k steps, k ~ Zeta(2) up to 16, so that it moves something. Default False."""


@dataclass
class SacOptions(ReplayLearningOptions):
    """Settings of :class:`epo_lab.algorithms.SAC`."""

    temperature: TemperatureOptions = field(default_factory=TemperatureOptions)
    gaussian: GaussianOptions = field(default_factory=GaussianOptions)

    def check(self, num_envs: int, num_steps: int) -> None:
        """Raise a :class:`UserError` if values do not go together."""
        super().check(num_envs, num_steps)
        _check_order("gaussian.log_std", self.gaussian.log_std_min, self.gaussian.log_std_max)


@dataclass
class NoiseOptions:
    """Noise on the actions of a deterministic policy, as a share of their bounds."""

    std_min: Weight = 0.001
    """Least standard deviation of an environment. Default 0.001."""
    std_max: Weight = 0.4
    """Largest one. Default 0.4."""
    spread: Annotated[str, one_of(SPREADS)] = "random"
    """Which environment has which: ``random`` (default, redrawn at the end of an episode) or ``linear`` (from the first
    environment to the last)."""
    target_std: Weight = 0.2
    """Standard deviation of the noise on the target policy's actions. Default 0.2."""
    target_clip: Weight = 0.5
    """Largest absolute value of that noise. Default 0.5."""


@dataclass
class Td3Options(ReplayLearningOptions):
    """Settings of :class:`epo_lab.algorithms.TD3`."""

    noise: NoiseOptions = field(default_factory=NoiseOptions)
    target_actor: bool = True
    """Whether targets come from a copy of the policy that follows it. Default True; PQL has none."""

    def check(self, num_envs: int, num_steps: int) -> None:
        """Raise a :class:`UserError` if values do not go together."""
        super().check(num_envs, num_steps)
        _check_order("noise.std", self.noise.std_min, self.noise.std_max)


def _check_order(name: str, least: float, largest: float) -> None:
    if least > largest:
        raise UserError(f"{ROOT}.{name}_min={least:g} is above {name}_max={largest:g}")
