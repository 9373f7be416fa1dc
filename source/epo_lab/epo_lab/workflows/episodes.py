"""Count what whole episodes reach."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Episodes:
    """The first ``wanted`` episodes of every environment.

    Taking the same number from each keeps short episodes, which are falls, from counting more often than long ones.
    """

    def __init__(self, num_envs: int, wanted: int) -> None:
        import torch

        self._wanted = wanted
        self._finished = torch.zeros(num_envs, dtype=torch.long)
        self._return = torch.zeros(num_envs)
        self._length = torch.zeros(num_envs, dtype=torch.long)
        self._metrics: dict[str, list[float]] = defaultdict(list)
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.timed_out: list[bool] = []

    def add(self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Take in one step of all environments."""
        self._return += rewards.cpu()
        self._length += 1
        ended = dones.cpu().bool()
        if not ended.any():
            return
        counted = (ended & (self._finished < self._wanted)).nonzero().flatten()
        self.returns += self._return[counted].tolist()
        self.lengths += self._length[counted].tolist()
        # tasks whose time-outs are ends like others do not tell them apart
        if "time_outs" in extras:
            self.timed_out += extras["time_outs"].cpu().bool()[counted].tolist()
        if len(counted):
            for tag, value in extras.get("log", {}).items():
                if tag.startswith("Metrics/"):
                    self._metrics[tag].append(float(value))
        self._finished += ended
        self._return[ended] = 0.0
        self._length[ended] = 0

    @property
    def complete(self) -> bool:
        """Whether every environment has played its episodes."""
        return bool((self._finished >= self._wanted).all())

    def metric(self, tag: str) -> float:
        """Return the mean of a logged metric over the steps in which counted episodes ended."""
        values = self._metrics[tag]
        return sum(values) / len(values) if values else float("nan")

    def report(self, longest: int) -> str:
        """Return a few lines about the episodes; ``longest`` is the length of a full one in steps."""
        if not self.returns:
            return "No episode ended."
        import statistics

        count = len(self.returns)
        spread = statistics.stdev(self.returns) if count > 1 else 0.0
        early = count - sum(self.timed_out)
        ends = f", of which {early} ({early / count:.0%}) ended before their time" if self.timed_out else ""
        lines = [
            f"episodes          {count}{ends}",
            f"return            {statistics.mean(self.returns):.2f} +- {spread:.2f} (standard deviation)",
            f"length            {statistics.mean(self.lengths):.0f} of {longest} steps",
        ]
        lines += [f"{tag:<17} {statistics.mean(values):.4g}" for tag, values in sorted(self._metrics.items())]
        return "\n".join(lines)
