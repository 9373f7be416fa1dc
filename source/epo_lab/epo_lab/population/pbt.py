"""Population-based training: who takes whose weights, and how settings mutate (DexPBT's rule, decided at once)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import torch

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT, Rule, Weight, Whole, between

from .evolution import Child, Evolution, Generation, Genome
from .fitness import Fitness

BEST_SHARE = 0.3
"""Share of the policies that others take over from."""
DROPPED_SHARE = 0.2
"""Share of the lowest objectives that do not count for the spread."""


@dataclass
class PbtOptions:
    """When and how policies change."""

    interval_steps: Whole = 6510
    """Control steps per environment between checks. Default 6,510: 20 million steps of 3,072 environments."""
    start_after_steps: Whole = 32552
    """Control steps that a policy learns after it was changed before it can be changed again. Default 32,552."""
    initial_delay_steps: Whole = 65104
    """Control steps before the first change. Default 65,104."""
    replace_fraction: Annotated[float, between(1e-9, 1 - BEST_SHARE + 1e-9)] = 0.3
    """Share of the policies, the worst, that can be changed at a check. Default 0.3."""
    threshold_std: Weight = 0.5
    """How far the better policy must be ahead, in standard deviations of the objectives. Default 0.5."""
    threshold_abs: Weight = 0.05
    """How far it must be ahead, as a share of its objective. Default 0.05."""
    mutation_rate: Annotated[float, between(0, 1)] = 0.15
    """Probability that a setting mutates. Default 0.15."""
    change: Annotated[
        tuple[float, ...],
        Rule(lambda pair: len(pair) == 2 and 1 <= pair[0] <= pair[1], "two factors from 1 on, the smaller first"),
    ] = (1.1, 1.5)
    """Range of the factor by which a setting is multiplied or divided. Default 1.1 to 1.5."""
    mutated: dict[str, str] = field(
        default_factory=lambda: {
            "max_grad_norm": "factor",
            "value_loss_coef": "factor",
            "bounds_loss_coef": "factor",
            "desired_kl": "factor",
            "clip_param": "clip",
            "num_learning_epochs": "epochs",
            "gamma": "discount",
        }
    )
    """Settings of a policy that mutate, and the rule for each: ``factor``, ``clip``, ``epochs`` or ``discount``."""

    def __post_init__(self) -> None:
        """Check the rules."""
        for name, rule in self.mutated.items():
            if rule not in MUTATIONS:
                raise UserError(f"{ROOT}.pbt.mutated.{name} must be one of {', '.join(MUTATIONS)}, not {rule}")


@dataclass(frozen=True)
class Change:
    """What happens to one policy at a check."""

    policy: int
    weights_from: int
    """Policy whose weights it goes on with: another's or its own."""
    settings_from: int
    """Policy whose settings it goes on with, mutated."""


class PbtRule(Evolution):
    """Decides which policies change: DexPBT's rule, at fixed intervals."""

    def __init__(self, options: PbtOptions, number: int, seed: int) -> None:
        """Create the rule.

        Args:
            options: Settings.
            number: Number of policies.
            seed: Seed of everything that is drawn.
        """
        self._options = options
        self._generator = torch.Generator().manual_seed(seed)
        self.checks, self.events = 0, 0
        self._changed_at = [-math.inf] * number
        self._reached = [-math.inf] * number
        self._checked_at = 0
        self._last_best = 0

    def note(self, objectives: list[float]) -> None:
        """Take in the objectives of an iteration: a check looks at the best since the last one."""
        self._reached = [max(old, new) for old, new in zip(self._reached, objectives, strict=True)]
        self._last_best = self.order(torch.tensor(objectives, dtype=torch.float64))[0]

    def order(self, objectives: torch.Tensor) -> list[int]:
        """Return the policies, best first; as long as no objective is known, the one that was best stays first."""
        if objectives.isnan().all():
            others = [policy for policy in range(len(objectives)) if policy != self._last_best]
            return [self._last_best, *others]
        return torch.sort(objectives.nan_to_num(nan=-math.inf), descending=True, stable=True).indices.tolist()

    def due(self, clock: Clock) -> bool:
        """Return whether an interval is over."""
        return clock.steps >= self._checked_at + self._options.interval_steps

    def propose(self, fitness: Fitness, genome: Genome, clock: Clock) -> Generation | None:
        """Return the changes, if there are any; settings are read before any of them changes."""
        reached, self._reached = self._reached, [-math.inf] * len(self._reached)
        self._checked_at = clock.steps
        if clock.steps < self._options.initial_delay_steps:
            return None
        ready = [clock.steps - changed >= self._options.start_after_steps for changed in self._changed_at]
        objectives = fitness.certain().tolist()
        changes = decide(objectives, reached, ready, self._options, self._generator)
        self.checks += 1
        if not changes:
            return None
        names = list(self._options.mutated)
        before, children, lines = genome.read(), [], []
        for change in changes:
            old = dict(zip(names, before[change.settings_from].tolist(), strict=True))
            new = self.mutate(old)
            row = torch.tensor(list(new.values()), dtype=torch.float64)
            children.append(Child(change.policy, (change.weights_from,), row))
            lines.append(asdict(change) | {"settings": new})
            self._changed_at[change.policy] = clock.steps
        self.events += 1
        record = {"iteration": clock.iterations, "objectives": objectives, "changes": lines}
        return Generation(children, record)

    def mutate(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return settings of which each has mutated with the given probability."""
        return mutate(settings, self._options, self._generator)

    def scalars(self) -> dict[str, float]:
        """Return what is logged."""
        return {"Generation/checks": float(self.checks), "Generation/events": float(self.events)}

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {name: getattr(self, name) for name in _STATE} | {"generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for name in _STATE:
            setattr(self, name, state[name])
        self._generator.set_state(state["generator"].cpu())


def decide(
    objectives: list[float],
    reached: list[float],
    ready: list[bool],
    options: PbtOptions,
    generator: torch.Generator,
) -> list[Change]:
    """Return which policies change.

    Args:
        objectives: Objective of every policy; NaN if it is not known.
        reached: The best objective that each has reached since the last check.
        ready: Whether each has learned long enough since it was changed.
        options: Thresholds.
        generator: Generator of the draws.
    """
    number = len(objectives)
    known = [value for value in objectives if not math.isnan(value)]
    if len(known) <= max(2, number // 2):
        return []
    order = sorted((p for p in range(number) if not math.isnan(objectives[p])), key=lambda p: -objectives[p])
    best = order[: math.ceil(BEST_SHARE * number)]
    worst = [p for p in order[-math.ceil(options.replace_fraction * number) :] if p not in best]
    spread = statistics.pstdev(sorted(known)[math.floor(DROPPED_SHARE * len(known)) :])
    changes = []
    for policy in sorted(worst):
        if not ready[policy] or reached[policy] >= min(objectives[p] for p in best):
            continue
        donor = best[int(torch.randint(len(best), (1,), generator=generator))]
        ahead = objectives[donor] - objectives[policy]
        far = ahead > options.threshold_std * spread and ahead > options.threshold_abs * abs(objectives[donor])
        weights_from = donor if far else policy
        own = bool(torch.rand((), generator=generator) < 0.5)
        changes.append(Change(policy, weights_from, policy if own else weights_from))
    return changes


def mutate(settings: dict[str, Any], options: PbtOptions, generator: torch.Generator) -> dict[str, Any]:
    """Return settings of which each has mutated with the given probability."""
    mutated = {}
    for name, value in settings.items():
        changes = bool(torch.rand((), generator=generator) < options.mutation_rate)
        rule = MUTATIONS[options.mutated[name]]
        low, high = options.change
        mutated[name] = rule(value, (low, high), generator) if changes else value
    return mutated


def _factor(value: float, change: tuple[float, float], generator: torch.Generator) -> float:
    low, high = change
    factor = low + (high - low) * float(torch.rand((), generator=generator))
    return value * factor if bool(torch.rand((), generator=generator) < 0.5) else value / factor


def _clip(value: float, change: tuple[float, float], generator: torch.Generator) -> float:
    return min(max(_factor(value, change, generator), 0.01), 0.3)


def _epochs(value: int, change: tuple[float, float], generator: torch.Generator) -> int:
    return min(max(value + (1 if bool(torch.rand((), generator=generator) < 0.5) else -1), 1), 8)


def _discount(value: float, change: tuple[float, float], generator: torch.Generator) -> float:
    # a discount mutates by its distance from 1, and less
    return 1.0 - min(_factor(1.0 - value, (1.1, 1.2), generator), 0.9)


MUTATIONS: dict[str, Callable[[Any, tuple[float, float], torch.Generator], Any]] = {
    "factor": _factor,
    "clip": _clip,
    "epochs": _epochs,
    "discount": _discount,
}

_STATE = ("checks", "events", "_changed_at", "_reached", "_checked_at", "_last_best")
