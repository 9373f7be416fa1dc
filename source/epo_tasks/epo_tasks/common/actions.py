"""Joint targets and torques, handed over once, and what acts on an object before every physics step.

Isaac Lab's setters of joint targets write to the engine, and the scene writes all targets again right before each
physics step. The first of the two is the dearest call outside the engine's step on CPU and changes nothing, so these
terms only fill the buffer that the second one sends. While LEAPP exports a policy, a stand-in takes the robot's place,
which learns from the setters what the policy puts out: it gets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from isaaclab.assets import BaseArticulation
from isaaclab.envs.mdp.actions.joint_actions import JointEffortAction, JointPositionAction
from isaaclab.envs.mdp.actions.joint_actions_to_limits import JointPositionToLimitsAction
from isaaclab.managers import ActionTerm

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv
    from isaaclab.managers import ActionTermCfg

    from .actions_cfg import SpinLimitCfg


def set_joint_targets(asset: BaseArticulation, joint_ids: Any, targets: torch.Tensor) -> None:
    """Set position targets [rad]; they take effect with the scene's next write."""
    if isinstance(asset, BaseArticulation):
        asset.actuators.target_command.position.torch[:, joint_ids] = targets
    else:
        asset.set_joint_position_target_index(target=targets, joint_ids=joint_ids)


class JointTarget(JointPositionAction):
    """Joint targets around the default pose."""

    def apply_actions(self) -> None:
        """Hand the targets to the drives."""
        set_joint_targets(self._asset, self._joint_ids, self.processed_actions)


class JointTargetToLimits(JointPositionToLimitsAction):
    """Joint targets from limit to limit."""

    def apply_actions(self) -> None:
        """Hand the targets to the drives."""
        set_joint_targets(self._asset, self._joint_ids, self.processed_actions)


class JointTorque(JointEffortAction):
    """Joint torques."""

    def apply_actions(self) -> None:
        """Hand the torques [N m] to the joints; they take effect with the scene's next write."""
        if isinstance(self._asset, BaseArticulation):
            self._asset.actuators.target_command.effort.torch[:, self._joint_ids] = self.processed_actions
        else:
            self._asset.set_joint_effort_target_index(target=self.processed_actions, joint_ids=self._joint_ids)


class WithoutAction(ActionTerm):
    """Acts on an object every step and asks nothing of the policy."""

    def __init__(self, cfg: ActionTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._no_action = torch.zeros(self.num_envs, 0, device=self.device)

    @property
    def action_dim(self) -> int:
        """None at all."""
        return 0

    @property
    def raw_actions(self) -> torch.Tensor:
        """Nothing."""
        return self._no_action

    @property
    def processed_actions(self) -> torch.Tensor:
        """Nothing."""
        return self._no_action

    def process_actions(self, actions: torch.Tensor) -> None:
        """Nothing."""

    def apply_actions(self) -> None:
        """Nothing."""


class SpinLimit(WithoutAction):
    """Damps and limits the spin of an object before every physics step, as PhysX does within it."""

    cfg: SpinLimitCfg

    def __init__(self, cfg: SpinLimitCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._kept = 1.0 - cfg.damping * env.physics_dt

    def apply_actions(self) -> None:
        """Change the object's velocity."""
        velocity = self._asset.data.root_com_vel_w.torch.clone()
        self.slow(velocity)
        self._asset.write_root_com_velocity_to_sim_mask(root_velocity=velocity)

    def slow(self, velocity: torch.Tensor) -> None:
        """Damp and limit the spin in velocities [m/s, rad/s] of shape (num_envs, 6)."""
        spin = velocity[:, 3:]
        spin *= self._kept
        spin *= self.cfg.spin / spin.norm(dim=-1, keepdim=True).clamp(min=self.cfg.spin)
