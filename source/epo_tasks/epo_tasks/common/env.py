"""The environment class of all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.envs.common import VecEnvStepReturn

from .compat import limit_ovphysx_threads
from .env_cfg import EpoEnvCfg
from .randomization import EpisodeNoise
from .reward_manager import EpisodeRewardManager


class EpoEnv(ManagerBasedRLEnv):
    """Isaac Lab's manager-based environment with our reward manager and, if asked for, noise in the actions."""

    cfg: EpoEnvCfg

    state_is_shared = True
    """Curricula are those of the environments of all processes."""

    def __init__(self, cfg: EpoEnvCfg, render_mode: str | None = None, **kwargs: Any) -> None:
        """Create the environment; see Isaac Lab's."""
        cfg.complete()
        super().__init__(cfg, render_mode, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs: curricula. The state of the physics is not part of it."""
        return {name: term.state_dict() for name, term in self._terms_with_state()}

    def load_state_dict(self, state: dict[str, Any]) -> bool:
        """Restore what :meth:`state_dict` returned; return False, as episodes begin anew."""
        for name, term in self._terms_with_state():
            if name in state:
                term.load_state_dict(state[name])
        return False

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """End episodes with the next step: those of tasks with a clock of their own by that clock."""
        self.episode_length_buf[env_ids] = self.max_episode_length
        for name in self.command_manager.active_terms:
            term = self.command_manager.get_term(name)
            if hasattr(term, "end_episodes"):
                term.end_episodes(env_ids)

    def _terms_with_state(self) -> list[tuple[str, Any]]:
        terms = [(name, self.command_manager.get_term(name)) for name in self.command_manager.active_terms]
        terms += [(f"curriculum/{name}", term) for name, term in self._curricula()]
        return [(name, term) for name, term in terms if hasattr(term, "state_dict")]

    def _curricula(self) -> list[tuple[str, Any]]:
        manager = self.curriculum_manager
        terms = manager.cfg if isinstance(manager.cfg, dict) else getattr(manager.cfg, "__dict__", {})
        return [(name, terms[name].func) for name in manager.active_terms]

    def _init_sim(self) -> None:
        limit_ovphysx_threads(self.sim)
        super()._init_sim()

    def load_managers(self) -> None:
        """Load Isaac Lab's managers and put ours in the place of its reward manager."""
        super().load_managers()
        noise = self.cfg.action_noise
        self.action_noise = None if noise is None else EpisodeNoise(noise, self.num_envs, self.device)
        self.reward_manager = EpisodeRewardManager(
            self.cfg.rewards,
            self,
            clip_at_zero=self.cfg.clip_reward_at_zero,
            sums=self.cfg.episode_sums,
            measures=self.cfg.measures,
        )
        self._joint_curricula = [term for _, term in self._curricula() if hasattr(term, "update")]

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance all environments by one policy step; the log holds only what ended in this very step.

        Curriculum terms with a method ``update`` are called after every step, which all processes take together: Isaac
        Lab calls curricula at resets, where processes must not wait for each other.
        """
        self.extras.pop("log", None)
        if self.action_noise is not None:
            action = self.action_noise(action.to(self.device))
        result = super().step(action)
        for term in self._joint_curricula:
            term.update()
        return result

    def _reset_idx(self, env_ids: Sequence[int]) -> None:
        super()._reset_idx(env_ids)
        if self.action_noise is not None:
            self.action_noise.reset(env_ids)
