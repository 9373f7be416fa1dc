"""Actions that Isaac Lab does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from isaaclab.managers import ActionTerm
from isaaclab.utils.array import index_fill_

from epo_tasks.common.actions import SpinLimit, WithoutAction, set_joint_targets

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv

    from .actions_cfg import JointTargetSpeedActionCfg, RandomForceCfg, SpeedLimitCfg


class JointTargetSpeedAction(ActionTerm):
    """Moves joint targets relative to their last value, within the limits of the joints."""

    cfg: JointTargetSpeedActionCfg

    def __init__(self, cfg: JointTargetSpeedActionCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        joints = self._asset.find_joints(cfg.joint_names, preserve_order=True)[0]
        self._joints = torch.tensor(joints, device=self.device)
        self._low, self._high = self._asset.data.joint_pos_limits.torch[:, self._joints].unbind(dim=-1)
        self._raw = torch.zeros(self.num_envs, len(self._joints), device=self.device)
        self._targets = torch.zeros_like(self._raw)

    @property
    def action_dim(self) -> int:
        """Number of joints."""
        return len(self._joints)

    @property
    def raw_actions(self) -> torch.Tensor:
        """What the policy asked for."""
        return self._raw

    @property
    def processed_actions(self) -> torch.Tensor:
        """Targets of the joints [rad]."""
        return self._targets

    def process_actions(self, actions: torch.Tensor) -> None:
        """Move the targets."""
        self._raw.copy_(actions)
        moved = self._targets + self.cfg.speed * self._env.step_dt * actions.clamp(-1.0, 1.0)
        self._targets.copy_(moved.clamp(self._low, self._high))

    def apply_actions(self) -> None:
        """Hand the targets to the drives."""
        set_joint_targets(self._asset, self._joints, self._targets)

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> None:
        """Begin an episode with the targets at the joints."""
        ids = slice(None) if env_ids is None else env_ids
        index_fill_(self._raw, ids, 0.0)
        self._targets[ids] = self._asset.data.joint_pos.torch[ids][:, self._joints]


class RandomForce(WithoutAction):
    """Pushes an object at random, at its centre of mass and in its own frame; forces fade and are replaced."""

    cfg: RandomForceCfg

    def __init__(self, cfg: RandomForceCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        own_mass = self._asset.data.body_mass.torch.reshape(self.num_envs, 1)
        mass = own_mass if cfg.mass is None else torch.full_like(own_mass, cfg.mass)
        self._std = cfg.scale * mass
        self._fade = cfg.decay ** (env.step_dt / cfg.decay_interval)
        self._probability = torch.zeros(self.num_envs, 1, device=self.device)
        self._force = torch.zeros(self.num_envs, 3, device=self.device)

    @property
    def processed_actions(self) -> torch.Tensor:
        """Forces [N]. Shape is (num_envs, 3)."""
        return self._force

    def process_actions(self, actions: torch.Tensor) -> None:
        """Let the forces fade, or replace them; a permanent force then stays for the control step."""
        new = torch.rand_like(self._probability) < self._probability
        self._force.copy_(torch.where(new, torch.randn_like(self._force) * self._std, self._force * self._fade))
        self._asset.permanent_wrench_composer.set_forces_and_torques_index(forces=self._force.unsqueeze(1))

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> None:
        """Begin an episode without a force and with a new probability."""
        ids = slice(None) if env_ids is None else env_ids
        index_fill_(self._force, ids, 0.0)
        low, high = map(math.log, self.cfg.probability)
        drawn = torch.rand_like(self._probability[ids])
        self._probability[ids] = (low + (high - low) * drawn).exp()


class SpeedLimit(SpinLimit):
    """Slows an object that spins, or that was just placed and moves, before every physics step."""

    cfg: SpeedLimitCfg

    def __init__(self, cfg: SpeedLimitCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._release_steps = round(cfg.release_time / env.step_dt)

    def slow(self, velocity: torch.Tensor) -> None:
        """Limit the motion of objects that were just placed, too."""
        super().slow(velocity)
        linear = velocity[:, :3]
        released = self._env.command_manager.get_term("goal").steps_since_placed >= self._release_steps
        slower = self.cfg.release_speed / linear.norm(dim=-1).clamp(min=self.cfg.release_speed)
        linear *= torch.where(released, 1.0, slower).unsqueeze(1)
