"""A vector of EnvPool's environments as rsl_rl wants it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.base.keys import FINAL_OBS, LOG, TIME_OUTS

from .tasks import METRIC, leaves, load_envpool, read_task

GROUP = "policy"
"""Name of the only observation group."""

UNBOUNDED = 1e6
"""Bound of an action from which on it is none."""


@dataclass
class EnvPoolCfg:
    """What the environments were made with; loggers keep it beside the agent's settings."""

    name: str
    """EnvPool's name of the task."""
    num_envs: int
    seed: int
    device: str
    num_threads: int
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the task that differ from EnvPool's."""


class EnvPoolEnv(VecEnv):
    """Steps all environments at once in EnvPool's threads; the state of the episodes is on the host, in numpy.

    EnvPool resets an environment in the step after the one in which its episode ended, and ignores that step's action.
    Here it is reset in the same step: the observation that came with the end is the final one, the next is the first
    of the new episode, and every action counts.
    """

    state_is_shared = True
    """What is restored after a stop, the number of steps, is the same for all processes."""

    def __init__(self, cfg: EnvPoolCfg) -> None:
        """Create the environments and reset them."""
        self.cfg = cfg
        task = read_task(cfg.name, cfg.options)
        self.num_envs, self.device = cfg.num_envs, cfg.device
        self.max_episode_length = task.max_episode_length
        self._flatten = Flatten(task.observations)
        self.scale_actions = ActionScale(task.actions, cfg.num_envs)
        self.num_actions = task.actions.shape[0]
        self._steps = 0
        self.begin(cfg.seed)

    def begin(self, *seed: int) -> None:
        """Begin new episodes in all environments; EnvPool takes a seed only while it makes them."""
        # Note: EnvPool seeds environment i with seed + i, so seeds 0 and 1 would share all environments but one
        seeds = np.random.SeedSequence(seed).generate_state(self.num_envs) >> 1
        options = {"num_envs": self.num_envs, "num_threads": self.cfg.num_threads, **self.cfg.options}
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            self._pool = load_envpool().make_gymnasium(self.cfg.name, seed=seeds.tolist(), **options)
            obs, _ = self._pool.reset()
        self._obs = self._flatten(obs)
        self._length = np.zeros(self.num_envs, dtype=np.int64)
        self._return = np.zeros(self.num_envs)
        self._whole = np.ones(self.num_envs, dtype=bool)

    @property
    def episode_length_buf(self) -> torch.Tensor:  # type: ignore[override]
        """Steps of the running episodes. Shape is (num_envs,)."""
        return torch.from_numpy(self._length).to(self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        """Set the clocks, as a runner does that spreads the first resets: these episodes are cut off early."""
        self._length = value.cpu().numpy().astype(np.int64)
        self._whole = self._length == 0

    def get_observations(self) -> TensorDict:
        """Return the current observations."""
        return TensorDict({GROUP: self._tensor(self._obs)}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions within [-1, 1] to all environments; those that end begin anew in the same step."""
        obs, rewards, terminated, truncated, _ = self._pool.step(self.scale_actions(actions.cpu().numpy()))
        self._steps += 1
        self._length += 1
        self._return += rewards

        # An end by time is a truncation: the value goes on. It is EnvPool's, or that of a clock that was set
        time_outs = (truncated | (self._length >= self.max_episode_length)) & ~terminated
        dones = terminated | time_outs
        final = self._obs = self._flatten(obs)
        extras: dict[str, Any] = {TIME_OUTS: self._tensor(time_outs), FINAL_OBS: {GROUP: self._tensor(final)}}
        if dones.any():
            whole = dones & self._whole
            if whole.any():
                extras[LOG] = {METRIC: float(self._return[whole].mean())}
            # the final observations have been handed out, so they are not written over
            self._obs = final.copy()
            self._reset(np.flatnonzero(dones))
        return self.get_observations(), self._tensor(rewards), self._tensor(dones.astype(np.int64)), extras

    def reset_envs(self, mask: torch.Tensor) -> None:
        """Begin new episodes where ``mask`` is true."""
        self._obs = self._obs.copy()
        self._reset(np.flatnonzero(mask.cpu().numpy()))

    def _reset(self, ids: np.ndarray) -> None:
        obs, _ = self._pool.reset(ids.astype(np.int32))
        self._obs[ids] = self._flatten(obs)
        self._length[ids] = 0
        self._return[ids] = 0.0
        self._whole[ids] = True

    def state_dict(self) -> dict[str, Any]:
        """Return how many steps were made: EnvPool's states cannot be read."""
        return {"steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> bool:
        """Begin new episodes, other ones than at the start of the run; return False, as none goes on."""
        self._steps = state["steps"]
        self.begin(self.cfg.seed, self._steps)
        return False

    def close(self) -> None:
        """End EnvPool's threads."""
        self._pool.close()

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


class Flatten:
    """Turns an observation, which may be a dict of arrays, into one vector an environment: sorted by key, float32."""

    def __init__(self, space: gym.Space) -> None:
        """Read the layout of the observations."""
        self.paths = [path for path, _ in leaves(space)]
        self.sizes = [int(np.prod(leaf.shape)) for _, leaf in leaves(space)]

    def __call__(self, obs: Any) -> np.ndarray:
        """Return new vectors. Shape is (n, sum of all sizes)."""
        parts = [reduce(getitem, path, obs) for path in self.paths]
        count = len(parts[0])
        flat = np.empty((count, sum(self.sizes)), dtype=np.float32)
        columns = [part.reshape(count, size) for part, size in zip(parts, self.sizes, strict=True)]
        return np.concatenate(columns, axis=1, out=flat, casting="same_kind")


class ActionScale:
    """Maps actions from [-1, 1] to the bounds of a task; an action without bounds stays as it is."""

    def __init__(self, space: gym.spaces.Box, num_envs: int) -> None:
        """Read the bounds of the task."""
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        bounded = (low > -UNBOUNDED) & (high < UNBOUNDED)
        low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
        self._factor = ((high - low) / 2.0).astype(space.dtype)
        self._centre = ((high + low) / 2.0).astype(space.dtype)
        self._limit = np.where(bounded, 1.0, np.inf).astype(space.dtype)
        self._actions = np.empty((num_envs, *space.shape), dtype=space.dtype)

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        """Return the task's actions, in an array that the next call writes over. Shape is (num_envs, num_actions)."""
        np.maximum(actions, -self._limit, out=self._actions, casting="same_kind")
        np.minimum(self._actions, self._limit, out=self._actions, casting="same_kind")
        self._actions *= self._factor
        self._actions += self._centre
        return self._actions
