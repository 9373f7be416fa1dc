"""A ring of the last transitions of all environments, from which n-step transitions are drawn.

Row ``r`` of column ``e`` holds what environment ``e`` saw, did and was paid in one step; what it saw next is row
``r + 1``, so an observation is stored once. Only where an episode ran out of time another observation came last than
the one in the next row; these final observations stand in a buffer of their own, and the row knows which is its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from tensordict import TensorDict

from epo_lab.base.errors import UserError
from epo_lab.base.memory import check_fits, gigabytes

CONTINUES, TERMINATED, TIMED_OUT, CUT = range(4)
"""What follows a step: the next row; nothing; a final observation; something that is not known, so that nobody may
learn from the step."""
MOST_STEPS = 8
"""Largest n of an n-step transition."""


class Transitions(NamedTuple):
    """A batch of n-step transitions; m <= n is the number of rewards that were really summed."""

    obs: TensorDict
    """Observations."""
    actions: torch.Tensor
    """Actions, as they were stored. Shape is (B, A)."""
    rewards: torch.Tensor
    """Discounted sum of m rewards. Shape is (B,)."""
    discounts: torch.Tensor
    """Factor of the value that follows: gamma^m; 0 after a termination. Shape is (B,)."""
    next_obs: TensorDict
    """Observations m steps later; the final ones after a time-out."""
    weights: torch.Tensor
    """1; 0 for a transition of which nothing is known (m = 0). Shape is (B,)."""


class Replay:
    """The ring. Nothing here waits for the device; all memory is taken once, by :meth:`allocate`."""

    def __init__(
        self,
        obs: TensorDict,
        num_actions: int,
        capacity: int,
        max_episode_length: int,
        *,
        device: str | torch.device = "cpu",
        learner_device: str | torch.device | None = None,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        """Describe the ring; no memory is taken yet.

        Args:
            obs: An observation of all environments; its groups are what is stored.
            num_actions: Number of actions.
            capacity: Transitions to keep, over all environments.
            max_episode_length: Length of a full episode [control steps]: how often final observations are expected.
            device: Where the ring lives.
            learner_device: Where batches go. Defaults to None: the same.
            dtype: Type in which observations are stored.
            seed: Seed of what is drawn.
        """
        self.num_envs = obs.batch_size[0]
        self.rows = math.ceil(capacity / self.num_envs) + 1
        """Rows of the ring; the newest holds an observation only."""
        self.device = torch.device(device)
        self._learner_device = torch.device(learner_device or device)
        self._sizes = {name: tuple(value.shape[1:]) for name, value in obs.items()}
        self._num_actions, self._dtype = num_actions, dtype
        slots = self.rows * self.num_envs
        # twice as many final observations as full episodes end with
        self.num_finals = min(slots, 2 * math.ceil(slots / max(max_episode_length, 1)) + self.num_envs)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.head = 0
        """Row that the next step goes to."""
        self.size = 0
        """Rows that hold a whole step."""
        self._sum_of_times = 0
        """Sum over the stored rows of when each was written [control steps]."""
        self._data: Any = None

    @property
    def allocated(self) -> bool:
        """Whether the ring has its memory."""
        return self._data is not None

    @property
    def num_transitions(self) -> int:
        """Number of stored transitions."""
        return self.size * self.num_envs

    @property
    def num_bytes(self) -> int:
        """Size of the whole ring [bytes]."""
        numbers = sum(math.prod(shape) for shape in self._sizes.values()) * self._dtype.itemsize
        slot = numbers + 4 * self._num_actions + 4 + 1 + 4
        return self.rows * self.num_envs * slot + (self.num_finals + 1) * numbers

    def __str__(self) -> str:
        """Return what is kept and where, in words."""
        kept = (self.rows - 1) * self.num_envs
        number = f"{kept / 1e6:.1f} M" if kept >= 1e5 else f"{kept:,}"
        return f"replay: {number} transitions, {gigabytes(self.num_bytes)} on {self.device}"

    def allocate(self) -> None:
        """Take the memory, or refuse if there is not enough."""
        if self._data is not None:
            return
        remedy = "set agent.algorithm.replay.size lower, or replay.dtype=bfloat16, or replay.device=host"
        check_fits(f"a replay of {(self.rows - 1) * self.num_envs:,} transitions", self.num_bytes, self.device, remedy)
        pinned = self.device.type == "cpu" and self._learner_device.type == "cuda"
        shape = (self.rows, self.num_envs)

        def zeros(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(*size, dtype=dtype, device=self.device, pin_memory=pinned)

        # Note: made here and not while acting, where tensors would be inference tensors
        with torch.inference_mode(False):
            obs = {name: zeros(*shape, *size, dtype=self._dtype) for name, size in self._sizes.items()}
            finals = {name: zeros(self.num_finals + 1, *size, dtype=self._dtype) for name, size in self._sizes.items()}
            self._data = TensorDict(
                {
                    "obs": TensorDict(obs, batch_size=shape),
                    "actions": zeros(*shape, self._num_actions),
                    "rewards": zeros(*shape),
                    "ending": zeros(*shape, dtype=torch.uint8),
                    "final": zeros(*shape, dtype=torch.int32),
                },
                batch_size=shape,
            )
            # the last row takes what is not kept
            self._finals: Any = TensorDict(finals, batch_size=[self.num_finals + 1])
            self._num_written = torch.zeros((), dtype=torch.int32, device=self.device)
        # when each row was written: on the host, so that nobody waits for it
        self._times = np.zeros(self.rows, dtype=np.int32)
        # views by slot: row * num_envs + column
        self._obs = {name: value.flatten(0, 1) for name, value in self._data["obs"].items()}
        self._actions, self._rewards = self._data["actions"].flatten(0, 1), self._data["rewards"].flatten()
        self._ending, self._final = self._data["ending"].flatten(), self._data["final"].flatten()
        self._window = torch.arange(MOST_STEPS, device=self.device)

    # --- writing

    def observe(self, obs: TensorDict) -> None:
        """Store what the environments see now: the first thing of the next step and the last of the one before."""
        for name, ring in self._data["obs"].items():
            ring[self.head].copy_(obs[name])

    def add(
        self,
        actions: torch.Tensor,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        time_outs: torch.Tensor | None = None,
        final_obs: Any = None,
        broken: torch.Tensor | None = None,
        time: int = 0,
    ) -> None:
        """Store the rest of the step whose observation :meth:`observe` has taken.

        Args:
            actions: Actions. Shape is (N, A).
            rewards: Rewards. Shape is (N,).
            dones: Whether an episode ended. Shape is (N,).
            time_outs: Whether it ended because its time was over. Defaults to None: never.
            final_obs: Last observations of episodes that ended; other rows mean nothing. Defaults to None: not known,
                and nobody learns from the last step of an episode that timed out.
            broken: Environments whose numbers mean nothing. Defaults to None: none.
            time: Control steps so far.
        """
        data, head = self._data, self.head
        if self.size == self.rows - 1:
            self._sum_of_times -= int(self._times[(head + 1) % self.rows])
        self._times[head] = time
        self._sum_of_times += time
        data["actions"][head].copy_(actions)
        data["rewards"][head].copy_(rewards)

        done = dones.to(self.device).bool()
        timed_out = torch.zeros_like(done) if time_outs is None else done & time_outs.to(self.device).bool()
        unknown = timed_out if final_obs is None else timed_out & ~self._store_finals(final_obs, timed_out)
        if broken is not None:
            unknown = unknown | broken.to(self.device).bool()
        ending = done.to(torch.uint8) * TERMINATED + timed_out.to(torch.uint8) * (TIMED_OUT - TERMINATED)
        data["ending"][head].copy_(ending.masked_fill(unknown, CUT))

        self.head = (head + 1) % self.rows
        self.size = min(self.size + 1, self.rows - 1)

    def mean_age(self, time: int) -> float:
        """Return how long ago stored steps were made, on average [control steps].

        Args:
            time: Control steps so far.
        """
        return time - self._sum_of_times / self.size if self.size else 0.0

    def _store_finals(self, final_obs: Any, timed_out: torch.Tensor) -> torch.Tensor:
        """Append final observations where an episode timed out, and return whether they are finite."""
        finals = {name: final_obs[name].to(self.device) for name in self._sizes}
        finite = torch.stack([value.isfinite().flatten(1).all(dim=1) for value in finals.values()]).all(dim=0)
        # Places in their ring, one after the other; what is not kept goes to a row that nobody reads
        kept = timed_out & finite
        numbers = self._num_written + kept.cumsum(0, dtype=torch.int32) - 1
        places = torch.where(kept, numbers % self.num_finals, self.num_finals).long()
        for name, value in finals.items():
            self._finals[name].index_copy_(0, places, value.to(self._dtype))
        self._data["final"][self.head].copy_(numbers)
        self._num_written += kept.sum(dtype=torch.int32)
        return finite

    def cut(self) -> None:
        """Note that all running episodes were cut off: what comes next does not follow from what came last."""
        if self.size:
            self._data["ending"][(self.head - 1) % self.rows].fill_(CUT)

    # --- reading

    def sample(self, batch_size: int, n_step: int, gamma: float) -> Transitions:
        """Draw transitions, evenly and with replacement.

        Args:
            batch_size: Number of transitions.
            n_step: Most rewards to sum.
            gamma: Discount factor.
        """
        ages = torch.randint(self.size, (batch_size,), generator=self.generator, device=self.device)
        columns = torch.randint(self.num_envs, (batch_size,), generator=self.generator, device=self.device)
        return self.gather(ages, columns, n_step, gamma)

    def gather(self, steps: torch.Tensor, columns: torch.Tensor, n_step: int, gamma: float) -> Transitions:
        """Return the n-step transitions that begin in some steps.

        Args:
            steps: Numbers of the steps, counted from the oldest stored one. Shape is (B,).
            columns: Environments. Shape is (B,).
            n_step: Most rewards to sum.
            gamma: Discount factor.
        """
        window = steps.unsqueeze(1) + self._window[:n_step]
        slots = self._slots(window, columns.unsqueeze(1))
        ending, final = self._ending[slots], self._final[slots]

        # A step counts if it is stored, what follows it is known, and the episode did not end before it
        lost = (ending == TIMED_OUT) & (final < self._num_written - self.num_finals)
        usable = (window < self.size) & (ending != CUT) & ~lost
        goes_on = (usable & (ending == CONTINUES)).cumprod(dim=1).bool()
        counts = usable.clone()
        counts[:, 1:] &= goes_on[:, :-1]

        # n-step return: sum of gamma^k r_k over the m rewards that count, then gamma^m times the value that follows
        powers = gamma ** self._window[:n_step].to(torch.float32)
        rewards = (self._rewards[slots] * counts * powers).sum(dim=1)
        number = counts.sum(dim=1)
        last = (number - 1).clamp(min=0).unsqueeze(1)
        last_ending = ending.gather(1, last).squeeze(1)
        known = number > 0
        discounts = gamma ** number.to(torch.float32) * (known & (last_ending != TERMINATED))

        # The observation that follows: the next row, or the final one after a time-out
        timed_out = (known & (last_ending == TIMED_OUT)).unsqueeze(1)
        following = self._slots(steps + number, columns)
        place = final.gather(1, last).squeeze(1).long() % self.num_finals
        first = slots[:, 0]
        obs, next_obs = {}, {}
        for name, ring in self._obs.items():
            obs[name] = self._hand_out(ring.index_select(0, first))
            ended = timed_out.view(-1, *[1] * (ring.dim() - 1))
            after = torch.where(ended, self._finals[name].index_select(0, place), ring.index_select(0, following))
            next_obs[name] = self._hand_out(after)
        return Transitions(
            TensorDict(obs, batch_size=[len(steps)]),
            self._hand_out(self._actions.index_select(0, first)),
            self._hand_out(rewards),
            self._hand_out(discounts),
            TensorDict(next_obs, batch_size=[len(steps)]),
            self._hand_out(known),
        )

    def newest(self, count: int) -> TensorDict:
        """Return the observations of the newest steps, of all environments.

        Args:
            count: Number of steps, which are stored.
        """
        steps = torch.arange(self.size - count, self.size, device=self.device).unsqueeze(1)
        slots = self._slots(steps, torch.arange(self.num_envs, device=self.device)).flatten()
        obs = {name: self._hand_out(ring.index_select(0, slots)) for name, ring in self._obs.items()}
        return TensorDict(obs, batch_size=[len(slots)])

    def _slots(self, steps: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Return where steps are, counted from the oldest."""
        return (steps + (self.head - self.size)) % self.rows * self.num_envs + columns

    def _hand_out(self, values: torch.Tensor) -> torch.Tensor:
        return values.to(device=self._learner_device, dtype=torch.float32)

    # --- state

    def state_dict(self) -> dict[str, Any]:
        """Return everything that was stored."""
        if self._data is None:
            return {}
        # rows that were never written are left out
        rows = self.rows if self.size == self.rows - 1 else self.head + 1
        finals = min(int(self._num_written), self.num_finals)
        return {
            "rows": self.rows,
            "head": self.head,
            "size": self.size,
            "num_written": self._num_written,
            "times": torch.from_numpy(self._times),
            "sum_of_times": self._sum_of_times,
            "generator": self.generator.get_state(),
            "obs": {name: _own(value, rows) for name, value in self._data["obs"].items()},
            "finals": {name: _own(value, finals) for name, value in self._finals.items()},
            **{name: _own(self._data[name], rows) for name in _PLAIN},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        if not state:
            return
        same = {name: tuple(value.shape[1:]) for name, value in state["finals"].items()} == self._sizes
        if state["rows"] != self.rows or state["rewards"].shape[1] != self.num_envs or not same:
            raise UserError(
                f"the stored replay has {(state['rows'] - 1) * state['rewards'].shape[1]:,} transitions of"
                f" {state['rewards'].shape[1]} environments, this run {(self.rows - 1) * self.num_envs:,} of"
                f" {self.num_envs}: go on with the same sizes, or delete replay.pt to fill a new one"
            )
        self.allocate()
        self.head, self.size = state["head"], state["size"]
        self._num_written.copy_(state["num_written"])
        self._times[:] = state["times"].cpu().numpy()
        self._sum_of_times = state["sum_of_times"]
        self.generator.set_state(state["generator"].cpu())
        for name, value in state["obs"].items():
            self._data["obs", name][: len(value)].copy_(value)
        for name, value in state["finals"].items():
            self._finals[name][: len(value)].copy_(value)
        for name in _PLAIN:
            self._data[name][: len(state[name])].copy_(state[name])


_PLAIN = ("actions", "rewards", "ending", "final")


def _own(value: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the first rows; a part of a tensor is copied, because a file would hold all of it."""
    return value if rows == len(value) else value[:rows].clone()
