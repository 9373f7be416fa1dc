"""Episodes of all environments: noted at every step with a copy or two, worked out for many steps at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from epo_lab.base.keys import BROKEN

ROWS = 32
"""Steps that are noted before they are worked out, if nobody asks earlier."""


class Steps(NamedTuple):
    """What ended in some steps. All shapes are (T, N)."""

    ended: torch.Tensor
    """Whether an episode ended by a step."""
    whole: torch.Tensor
    """Whether one ended that counts: it was not tainted."""
    returns: torch.Tensor
    """Sum of the rewards of the episode up to a step."""
    lengths: torch.Tensor
    """Number of its steps up to a step."""
    values: torch.Tensor | None
    """What was noted beside the rewards, if anything."""


class EpisodeNotes:
    """Rewards and ends of the last steps, and the running episodes before them.

    An episode is tainted if it began midway, or under somebody else: it does not count when it ends. What a broken
    environment does before it is reset is tainted too.
    """

    def __init__(self, num_envs: int, device: torch.device | str, *, with_values: bool = False) -> None:
        """Allocate everything once; every running episode is tainted, because a runner may have begun it midway.

        Args:
            num_envs: Number of environments.
            device: Where the tensors live.
            with_values: Whether a value of every environment is noted at each step.
        """
        self._rewards = torch.zeros(ROWS, num_envs, device=device)
        self._dones = torch.zeros(ROWS, num_envs, dtype=torch.bool, device=device)
        self._values = torch.zeros(ROWS, num_envs, device=device) if with_values else None
        self._broken: torch.Tensor | None = None
        self._filled = 0
        self.running_return = torch.zeros(num_envs, device=device)
        self.running_length = torch.zeros(num_envs, device=device)
        self.tainted = torch.ones(num_envs, dtype=torch.bool, device=device)

    @property
    def full(self) -> bool:
        """Whether :meth:`take` must be called before the next step."""
        return self._filled == ROWS

    def step(
        self, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any], value: torch.Tensor | None = None
    ) -> None:
        """Note one step of all environments."""
        row = self._filled
        self._rewards[row].copy_(rewards)
        self._dones[row].copy_(dones)
        if self._values is not None and value is not None:
            self._values[row].copy_(value)
        if BROKEN in extras and self._broken is None:
            with torch.inference_mode(False):
                self._broken = torch.zeros_like(self._dones)
        if self._broken is not None:
            broken = extras.get(BROKEN)
            self._broken[row].zero_() if broken is None else self._broken[row].copy_(broken)
        self._filled += 1

    def take(self) -> Steps | None:
        """Work out the steps since the last call; None if there are none."""
        count, self._filled = self._filled, 0
        if count == 0:
            return None
        done = self._dones[:count]
        at = torch.arange(count, device=done.device).unsqueeze(1)

        # The last end at or before each step, and before it; -1 if there is none
        ends = torch.where(done, at, -1).cummax(dim=0).values
        before = _shifted(ends, torch.full_like(ends[0], -1))

        # Return and length of the episode that each step belongs to
        sums = self._rewards[:count].double().cumsum(dim=0)
        sums = torch.cat([torch.zeros_like(sums[:1]), sums])
        running_return, running_length = self.running_return.double(), self.running_length
        goes_on = before < 0
        returns = sums[1:] - sums.gather(0, before + 1) + torch.where(goes_on, running_return, 0.0)
        lengths = at - before + torch.where(goes_on, running_length, 0.0)

        # Tainted: no end since what tainted the episode, which may have been before the first of these steps
        first = torch.where(self.tainted, -1, -2)
        if self._broken is None:
            taints = first.expand_as(ends)
            tainted, ended = goes_on & self.tainted, done.clone()
        else:
            broken = self._broken[:count]
            taints = torch.maximum(torch.where(broken, at, -2).cummax(dim=0).values, first)
            tainted, ended = _shifted(taints, first) >= before, done & ~broken

        # The running episodes after these steps
        self.running_return.copy_(
            sums[-1] - sums.gather(0, ends[-1:] + 1)[0] + torch.where(ends[-1] < 0, running_return, 0.0)
        )
        self.running_length.copy_(count - 1 - ends[-1] + torch.where(ends[-1] < 0, running_length, 0.0))
        self.tainted.copy_(taints[-1] >= ends[-1])
        values = None if self._values is None else self._values[:count].clone()
        return Steps(ended, ended & ~tainted, returns.float(), lengths, values)

    def interrupt(self) -> None:
        """Forget the running episodes, because they were cut off."""
        self._filled = 0
        self.running_return.zero_()
        self.running_length.zero_()
        self.tainted.fill_(True)


def _shifted(rows: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Return what stood a row earlier. Shape is (T, N)."""
    return torch.cat([first.unsqueeze(0), rows[:-1]])
