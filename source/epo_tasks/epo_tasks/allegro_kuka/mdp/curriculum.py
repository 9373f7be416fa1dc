"""How long a goal may take, at first and later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import CurriculumTermCfg, ManagerTermBase

from epo_lab.base.processes import joint_mean

from .goal import LOOK_INTERVAL

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from .goal import GoalCommand

ENOUGH_FINISHED = 0.9
"""Share of the environments that must have finished an episode of the present stage before it is judged."""


class GoalLength(ManagerTermBase):
    """Short episodes at first, so that many grasps are tried; longer ones, stage by stage, as objects are lifted.

    A stage ends when, of the environments that finished an episode in it, enough lifted the object in their last one.
    It never comes back. Isaac Lab calls a curriculum when environments are reset, which no two processes do in the same
    step; the numbers are therefore put together in :meth:`update`, which all processes call in every step.
    """

    def __init__(self, cfg: CurriculumTermCfg, env: ManagerBasedRLEnv) -> None:
        """Begin with the first stage.

        Args:
            cfg: The config, with the arguments of :meth:`__call__`.
            env: The environment; its command ``goal`` is the :class:`~.goal.GoalCommand` whose length is set.
        """
        super().__init__(cfg, env)
        self._goal: GoalCommand = env.command_manager.get_term("goal")
        self._lengths: list[int] = list(cfg.params["lengths"])
        self._goal.goal_length = self._lengths[0]
        self.finished = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        """Whether an environment finished an episode since the stage began. Shape is (num_envs,)."""

    def __call__(
        self, env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, lengths: Sequence[int], lifted_share: float
    ) -> None:
        """Note which environments finish an episode; the length itself is logged by the goal.

        Args:
            env: The environment.
            env_ids: Environments that are reset.
            lengths: Steps that a goal may take, for each stage.
            lifted_share: Share of the environments whose last episode lifted the object that ends a stage.
        """
        self.finished[env_ids] |= env.episode_length_buf[env_ids] > 0

    def update(self) -> None:
        """Go to the next stage if the environments of all processes are ready for it; looks every few steps."""
        is_last = self._goal.goal_length >= self._lengths[-1]
        if is_last or self._env.common_step_counter % LOOK_INTERVAL != 0:
            return
        finished = float(joint_mean(self.finished.double()))
        if finished < ENOUGH_FINISHED:
            return
        lifted = self.finished & (self._goal.last_episode["lifted"] > 0.5)
        if float(joint_mean(lifted.double())) >= self.cfg.params["lifted_share"] * finished:
            self._set_length(self._goal.goal_length + 1)

    def state_dict(self) -> dict[str, Any]:
        """Return what belongs to a checkpoint: the stage. Who finished an episode in it begins anew."""
        return {"goal_length": self._goal.goal_length}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned; of other lengths the first that is not shorter."""
        self._set_length(int(state["goal_length"]))

    def _set_length(self, least: int) -> None:
        self._goal.goal_length = next((n for n in self._lengths if n >= least), self._lengths[-1])
        self.finished.zero_()
