"""How good each agent is: the mean over its environments of the last finished episode's fitness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import torch

from epo_lab.base.errors import UserError
from epo_lab.base.options import SHARE, Rule, Whole
from epo_lab.base.processes import sum_over_processes

from .episodes import EpisodeNotes

SUCCESS_OR_RETURN = "success_or_return"
BY_SUCCESS = "by_success"
SUCCESS_RATE = "Metrics/success_rate"
"""Tag under which Isaac Lab's tasks log their success rate."""
RATE, RATE_STEPS = "rate:", 1000.0
"""Prefix of a value that counts by the time it took, and the control steps of its unit."""
FitnessSource = str | Callable[[], torch.Tensor]
"""``"return"``, ``"extras:<key>"`` (a per-environment tensor), ``"rate:<key>"`` (the same by time), ``"log:<tag>"`` (a
mean over the environments whose episodes end in a step), ``"success_or_return"``, or a callable that returns one value
an environment."""


@dataclass
class FitnessOptions:
    """What an episode is worth, and when an agent has shown enough of them."""

    source: Annotated[
        str,
        Rule(
            lambda name: name in ("return", "success_or_return") or name.startswith(("extras:", "rate:", "log:")),
            "'return', 'success_or_return', 'extras:<key>', 'rate:<key>' or 'log:<tag>'",
        ),
    ] = "return"
    """Fitness of an episode: ``return`` (default); ``extras:<key>``, a per-environment value at the episode's end;
    ``rate:<key>``, the sum of such values over that of the episodes' lengths, for 1,000 control steps, where better
    agents have longer episodes; ``log:<tag>``, such as ``log:Metrics/success_rate``, which Isaac Lab's tasks log as a
    mean over the environments that end in the same step: members that end together share it, so that differences
    between them look smaller; or ``success_or_return``: ``log:Metrics/success_rate`` as soon as the task logs it, until
    then the return."""
    min_coverage: Annotated[float, SHARE] = 0.95
    """Share of an agent's environments that must have finished an episode before it is ranked. Default 0.95: with less,
    a new agent is judged by its shortest episodes."""
    min_episodes: Whole = 1
    """Episodes an environment must finish before it counts. Default 1."""


@dataclass(frozen=True)
class Fitness:
    """Fitness of all agents, over all processes."""

    values: torch.Tensor
    """Mean fitness of an agent; NaN if it has none yet. Shape is (K,), float64, on the CPU."""
    counts: torch.Tensor
    """Number of its environments that count. Shape is (K,)."""
    errors: torch.Tensor
    """Standard error of the mean. Shape is (K,)."""
    evaluated: torch.Tensor
    """Whether enough of its environments count. Shape is (K,), bool."""

    def certain(self) -> torch.Tensor:
        """Return the values of those that count enough environments; NaN for the others."""
        return self.values.masked_fill(~self.evaluated, math.nan)


class FitnessTracker:
    """Latches the fitness of finished episodes. Nothing here waits for the device until :meth:`compute` is called."""

    def __init__(
        self,
        agent_ids: torch.Tensor,
        num_agents: int,
        *,
        source: FitnessSource = "return",
        min_coverage: float = 0.95,
        min_episodes: int = 1,
    ) -> None:
        """Create the tracker; every running episode is tainted, because a runner may have begun it midway.

        Args:
            agent_ids: Agent of every environment.
            num_agents: Number of agents.
            source: Where the fitness of an episode comes from.
            min_coverage: Share of an agent's environments that must count before it is evaluated.
            min_episodes: Episodes an environment must finish before it counts.
        """
        num_envs, device = len(agent_ids), agent_ids.device
        self.source, self.min_coverage, self.min_episodes = source, min_coverage, min_episodes
        self._by_time = isinstance(source, str) and source.startswith(RATE)
        self._by_success = False
        """Whether a success rate has been logged, for ``success_or_return``."""
        self._num_agents = num_agents
        self._agent_ids = agent_ids
        self._notes = EpisodeNotes(num_envs, device, with_values=source != "return")
        self._last = torch.zeros(num_envs, device=device)
        self._time = torch.ones(num_envs, device=device)
        """What the last value is divided by: the length of its episode [1,000 control steps], or 1."""
        self._episodes = torch.zeros(num_envs, dtype=torch.long, device=device)

    def step(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step of all environments, with raw rewards."""
        if self.source == SUCCESS_OR_RETURN and not self._by_success and SUCCESS_RATE in extras.get("log", {}):
            # what was latched so far are returns
            self._work_out()
            self._episodes.zero_()
            self._by_success = True
        self._notes.step(rewards, dones, extras, self._episode_value(extras))
        if self._notes.full:
            self._work_out()

    def _work_out(self) -> None:
        """Latch the episodes that ended since the last time."""
        steps = self._notes.take()
        if steps is not None:
            no_success_yet = self.source == SUCCESS_OR_RETURN and not self._by_success
            values = steps.returns if steps.values is None or no_success_yet else steps.values
            # a success rate that was not logged with an end says nothing of it
            times = steps.lengths / RATE_STEPS if self._by_time else None
            self._latch(steps.whole & ~values.isnan() if self._by_success else steps.whole, values, times)

    def _latch(self, whole: torch.Tensor, values: torch.Tensor, times: torch.Tensor | None) -> None:
        """Keep the value of every environment's last whole episode, and how many there were.

        Args:
            whole: Whether an episode that counts ended by a step. Shape is (T, num_envs).
            values: What it is worth. Shape is (T, num_envs).
            times: What that is divided by; None if by nothing. Shape is (T, num_envs).
        """
        # The last step at which each environment ended an episode that counts; -1 if there is none
        at = torch.arange(len(whole), device=whole.device).unsqueeze(1)
        last = torch.where(whole, at, -1).amax(dim=0)
        for kept, new in ((self._last, values), (self._time, times)):
            if new is not None:
                latest = new.gather(0, last.clamp(min=0).unsqueeze(0))[0]
                kept.copy_(torch.where(last < 0, kept, latest))
        self._episodes += whole.sum(dim=0)

    def compute(self) -> Fitness:
        """Return the fitness of all agents, joined over the processes."""
        self._work_out()
        means, counts, errors, envs = self._means()
        needed = torch.ceil(self.min_coverage * envs).clamp(min=1)
        return Fitness(means, counts, errors, (counts >= needed) & ~means.isnan())

    def restart(self, agents: list[int]) -> None:
        """Forget these agents: their genes are new, and only episodes that begin under them count."""
        self._work_out()
        columns = torch.isin(self._agent_ids, torch.tensor(agents, device=self._agent_ids.device))
        self._episodes = torch.where(columns, 0, self._episodes)
        self._notes.tainted |= columns

    def interrupt(self, *, forget: bool = False) -> None:
        """Forget the running episodes, because they were cut off, and the finished ones too if asked to."""
        self._work_out()
        self._notes.interrupt()
        if forget:
            self._episodes.zero_()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return everything a resumed run needs."""
        self._work_out()
        state = {name: value.clone() for name, value in self._state().items()}
        return {**state, BY_SUCCESS: torch.tensor(self._by_success)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for name, value in self._state().items():
            value.copy_(state[name])
        # checkpoints of version 0.2.0 knew no such fitness
        self._by_success = bool(state.get(BY_SUCCESS, False))

    def _state(self) -> dict[str, torch.Tensor]:
        notes = self._notes
        running = {"return": notes.running_return, "tainted": notes.tainted}
        times = {"time": self._time} if self._by_time else {}
        return running | {"last": self._last, "episodes": self._episodes} | times

    def _episode_value(self, extras: dict[str, Any]) -> torch.Tensor | None:
        if self.source == "return":
            return None
        if self.source == SUCCESS_OR_RETURN:
            rate = extras.get("log", {}).get(SUCCESS_RATE, math.nan)
            return torch.as_tensor(rate, dtype=self._last.dtype, device=self._last.device).expand_as(self._last)
        if not isinstance(self.source, str):
            value = self.source()
        elif self.source.startswith("log:"):
            return self._logged(self.source.removeprefix("log:"), extras.get("log", {}))
        elif (key := self.source.partition(":")[2]) in extras:
            value = extras[key]
        else:
            raise UserError(f"fitness '{self.source}': the environment's extras have only {', '.join(sorted(extras))}")
        return value

    def _logged(self, tag: str, log: dict[str, Any]) -> torch.Tensor:
        """Return a logged scalar for everybody; unknown (NaN) if nothing was logged."""
        if log and tag not in log:
            raise UserError(f"fitness 'log:{tag}': the task logs only {', '.join(sorted(log))}")
        value = torch.as_tensor(log.get(tag, math.nan), dtype=self._last.dtype, device=self._last.device)
        return value.expand_as(self._last)

    def _means(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return mean, count and standard error of the counting environments of each agent, and how many it has."""
        # Count, sum and sum of squares by agent, over all processes
        weight = (self._episodes >= self.min_episodes).double()
        last, time = self._last.double(), self._time.double()
        rows = [torch.ones_like(weight), weight, weight * last, weight * last.square()]
        if self._by_time:
            rows += [weight * time, weight * last * time, weight * time.square()]
        sums = torch.zeros(len(rows), self._num_agents, dtype=torch.float64, device=last.device)
        sums.index_add_(1, self._agent_ids, torch.stack(rows))
        envs, count, total, square, *of_time = sum_over_processes(sums).cpu()
        times, product, square_time = of_time or (count, total, count)
        # Value over time; the standard error of a ratio is that of its residuals, value - mean * time
        mean = total / times
        residuals = (square - 2.0 * mean * product + mean.square() * square_time).clamp(min=0.0)
        error = (residuals / (count - 1.0).clamp(min=1.0) / count).sqrt() * count / times
        return mean, count, error, envs
