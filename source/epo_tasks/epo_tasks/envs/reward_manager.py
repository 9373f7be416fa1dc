"""Isaac Lab's reward manager, with a total that can be clipped at zero and the return of whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from isaaclab.managers import RewardManager


class EpisodeRewardManager(RewardManager):
    """Clips the total step reward if asked to, and logs the undiscounted return of finished episodes.

    The sums of the single terms stay unclipped.
    """

    def __init__(self, cfg: object, env, *, clip_at_zero: bool, sums: dict[str, Callable] | None = None):
        """Create the manager.

        Args:
            cfg: The reward terms.
            env: The environment.
            clip_at_zero: Whether the total of a step is clipped at zero.
            sums: More functions of the environment whose sums over an episode are logged. Defaults to None.
        """
        super().__init__(cfg, env)
        self._clip_at_zero = clip_at_zero
        self._functions = dict(sums or {})
        self._totals = {name: torch.zeros(self.num_envs, device=self.device) for name in self._functions}
        self._episode_return = self._totals["episode_return"] = torch.zeros(self.num_envs, device=self.device)
        self._episode_steps = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)

    def compute(self, dt: float) -> torch.Tensor:
        """Return the total reward of this step. Shape is (num_envs,)."""
        reward = super().compute(dt)
        if self._clip_at_zero:
            reward.clamp_(min=0.0)
        self._episode_return += reward
        for name, function in self._functions.items():
            self._totals[name] += function(self._env)
        self._episode_steps += 1
        return reward

    def reset(self, env_ids: Sequence[int] | None = None) -> dict[str, torch.Tensor]:
        """Return the log of the episodes that ended, and begin new ones."""
        ids = slice(None) if env_ids is None else env_ids
        extras = super().reset(env_ids)
        # an episode whose clock a runner set forward, to spread the first resets, is not a whole one
        whole = (self._episode_steps[ids] > 0) & (self._episode_steps[ids] == self._env.episode_length_buf[ids])
        if whole.any():
            extras |= {f"Metrics/{name}": total[ids][whole].mean() for name, total in self._totals.items()}
        for total in self._totals.values():
            total[ids] = 0.0
        self._episode_steps[ids] = 0
        return extras
