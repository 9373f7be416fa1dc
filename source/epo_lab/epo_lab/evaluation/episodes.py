"""Play whole episodes and count what they reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epo_lab.runner.console import Console
from epo_lab.runner.guard import GuardedEnv

if TYPE_CHECKING:
    import torch

    from .policy import Policy

RETURN = "return"


@dataclass(frozen=True)
class Episode:
    """One whole episode."""

    agent: int
    env: int
    score: float
    """The task's metric; the return if the task's metric is that, or known as an average only."""
    ret: float
    """Undiscounted return."""
    length: int
    """Steps."""
    timed_out: bool | None
    """Whether it ended because of its length; None if the task does not tell such ends from others."""
    success: float | None = None
    """Whether it was a success; None if the task does not tell."""


class Episodes:
    """The first ``wanted`` episodes of every player in every environment.

    Taking the same number from each environment keeps short episodes, which are falls, from counting more often than
    long ones. Environments hand players round, each beginning with another one: all play in all environments (terrains,
    objects), and none waits for the slowest.
    """

    def __init__(
        self, num_envs: int, wanted: int, players: Sequence[int] = (0,), metric: str = RETURN, *, rotate: bool = True
    ) -> None:
        """Begin to count.

        Args:
            num_envs: Number of environments.
            wanted: Episodes of a player in an environment.
            players: Agents that play.
            metric: Name under which the environments' extras hold the score of an episode that ends, or ``return``.
            rotate: Whether players go round. Otherwise each keeps to its environments, to be watched there.
        """
        import torch

        self.metric = metric
        self.list: list[Episode] = []
        self._players = torch.tensor(players)
        self._rotate = rotate
        self._wanted = wanted * len(players) if rotate else wanted
        self._envs = torch.arange(num_envs)
        self._finished = torch.zeros(num_envs, dtype=torch.long)
        self._return = torch.zeros(num_envs)
        self._length = torch.zeros(num_envs, dtype=torch.long)
        self._metrics: dict[str, list[float]] = defaultdict(list)
        self._outcomes: dict[str, list[float]] = defaultdict(list)

    @property
    def agents(self) -> torch.Tensor:
        """Who plays in each environment now."""
        turns = self._envs + self._finished if self._rotate else self._envs
        return self._players[turns % len(self._players)]

    def add(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step of all environments."""
        self._return += rewards.cpu()
        self._length += 1
        ended = dones.cpu().bool()
        if not ended.any():
            return
        counted = (ended & (self._finished < self._wanted)).nonzero().flatten()
        if len(counted):
            self._count(counted, extras)
        self._finished += ended
        self._return[ended] = 0.0
        self._length[ended] = 0

    def _count(self, envs: torch.Tensor, extras: dict[str, Any]) -> None:
        if self.metric not in extras:
            self.metric = RETURN
        scores = self._return if self.metric == RETURN else extras[self.metric].cpu()
        # tasks whose time-outs are ends like others do not tell them apart
        timed_out = extras["time_outs"].cpu().bool()[envs].tolist() if "time_outs" in extras else [None] * len(envs)
        outcomes = {name: last.cpu()[envs].tolist() for name, last in extras.get("last_episode", {}).items()}
        success = outcomes.get("success_rate", [None] * len(envs))
        values = [self.agents[envs], envs, scores[envs], self._return[envs], self._length[envs]]
        for row in zip(*(value.tolist() for value in values), timed_out, success, strict=True):
            self.list.append(Episode(*row))
        for tag, value in extras.get("log", {}).items():
            if tag.startswith("Metrics/"):
                self._metrics[tag].append(float(value))
        for name, last in outcomes.items():
            self._outcomes[f"Metrics/{name}"] += last

    def most_steps(self, episode_length: int) -> int:
        """Return after how many steps every environment has played its episodes, if none ends early."""
        return self._wanted * episode_length

    @property
    def complete(self) -> bool:
        """Whether every environment has played its episodes."""
        return bool((self._finished >= self._wanted).all())

    @property
    def logged(self) -> dict[str, float]:
        """Mean over the counted episodes of what the task tells of each, else over the steps in which some ended."""
        return {tag: sum(values) / len(values) for tag, values in sorted((self._metrics | self._outcomes).items())}


def roll_out(env: Any, policy: Policy, episodes: Episodes, most_steps: int | None = None) -> Iterator[GuardedEnv]:
    """Step all environments for as long as the caller takes steps; hands out the guarded environment after each.

    An environment with a number that is not finite ends its episode and is reset.

    Args:
        env: The wrapped environment.
        policy: Who acts.
        episodes: Where what is reached is noted.
        most_steps: Number of steps that the caller will take at most; what takes more than a few seconds then shows how
            far it is. Default None: nothing is shown.
    """
    import torch

    guarded = GuardedEnv(env, limit=int(env.max_episode_length))
    obs = guarded.get_observations()
    policy.begin()
    steps, console = 0, Console(patient=True)

    def show(*, final: bool) -> None:
        if most_steps is not None:
            # episodes that end early are done before their time
            done = most_steps if episodes.complete else min(steps, most_steps)
            console.update(done, most_steps, {"episodes": str(len(episodes.list))}, final=final)

    try:
        while True:
            with torch.inference_mode():
                obs, rewards, dones, extras = guarded.step(policy(obs, episodes.agents))
                policy.reset(dones)
                episodes.add(rewards, dones, extras)
                guarded.end_iteration(steps, None)
            steps += 1
            show(final=False)
            yield guarded
    finally:
        show(final=True)
