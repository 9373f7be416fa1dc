"""Isaac Lab's reward manager, with a total that can be clipped at zero and the return of whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from isaaclab.managers import RewardManager
from isaaclab.utils.array import index_fill_

from .host import HostFlag, masked_mean


class EpisodeRewardManager(RewardManager):
    """Clips the total step reward if asked to, and logs the undiscounted return of finished episodes.

    The sums of the single terms stay unclipped.
    """

    def __init__(
        self,
        cfg: object,
        env,
        *,
        clip_at_zero: bool,
        sums: dict[str, Callable] | None = None,
        measures: dict[str, Callable] | None = None,
    ):
        """Create the manager.

        Args:
            cfg: The reward terms.
            env: The environment.
            clip_at_zero: Whether the total of a step is clipped at zero.
            sums: More functions of the environment whose sums over an episode are logged. Defaults to None.
            measures: Functions of the environment whose values go into the extras. Defaults to None.
        """
        super().__init__(cfg, env)
        self._clip_at_zero = clip_at_zero
        self._functions, self._measures = dict(sums or {}), dict(measures or {})
        self._totals = {name: torch.zeros(self.num_envs, device=self.device) for name in self._functions}
        self._episode_return = self._totals["episode_return"] = torch.zeros(self.num_envs, device=self.device)
        self._episode_steps = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        self._whole_ended = HostFlag(self.device)

    def compute(self, dt: float) -> torch.Tensor:
        """Return the total reward of this step. Shape is (num_envs,)."""
        reward = super().compute(dt)
        if self._clip_at_zero:
            reward.clamp_(min=0.0)
        self._episode_return += reward
        for name, function in self._functions.items():
            self._totals[name] += function(self._env)
        for name, function in self._measures.items():
            self._env.extras[name] = function(self._env)
        self._episode_steps += 1
        self._whole_ended.set(self._whole() & self._env.reset_buf)
        return reward

    def reset(self, env_ids: Sequence[int] | None = None) -> dict[str, torch.Tensor]:
        """Return the log of the episodes that ended, and begin new ones."""
        ids = slice(None) if env_ids is None else env_ids
        extras = super().reset(env_ids)
        whole = self._whole()[ids]
        # Note: a step resets what it just paid; a slice is a reset of everything, at any time
        if bool(whole.any()) if isinstance(ids, slice) else bool(self._whole_ended):
            extras |= {f"Metrics/{name}": masked_mean(total[ids], whole) for name, total in self._totals.items()}
        for counter in (*self._totals.values(), self._episode_steps):
            index_fill_(counter, ids, 0)
        return extras

    def _whole(self) -> torch.Tensor:
        """Return which episodes began at step 0: a runner sets clocks forward, to spread the first resets."""
        return (self._episode_steps > 0) & (self._episode_steps == self._env.episode_length_buf)
