"""The environment class of all tasks."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.envs.common import VecEnvStepReturn

from epo_tasks.physics.compat import limit_ovphysx_threads

from .env_cfg import EpoEnvCfg
from .reward_manager import EpisodeRewardManager


class EpoEnv(ManagerBasedRLEnv):
    """Isaac Lab's manager-based environment with our reward manager."""

    cfg: EpoEnvCfg

    def _init_sim(self) -> None:
        limit_ovphysx_threads(self.sim)
        super()._init_sim()

    def load_managers(self) -> None:
        """Load Isaac Lab's managers and put ours in the place of its reward manager."""
        super().load_managers()
        self.reward_manager = EpisodeRewardManager(self.cfg.rewards, self, clip_at_zero=self.cfg.clip_reward_at_zero)

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance all environments by one policy step; the log holds only what ended in this very step."""
        self.extras.pop("log", None)
        return super().step(action)
