"""Joint targets and torques, handed over once.

Isaac Lab's setters of joint targets write to the engine, and the scene writes all targets again right before each
physics step. The first of the two is the dearest call outside the engine's step on CPU and changes nothing, so these
terms only fill the buffer that the second one sends.
"""

from __future__ import annotations

from typing import Any

import torch
from isaaclab.assets import Articulation
from isaaclab.envs.mdp.actions.joint_actions import JointEffortAction, JointPositionAction
from isaaclab.envs.mdp.actions.joint_actions_to_limits import JointPositionToLimitsAction


def set_joint_targets(asset: Articulation, joint_ids: Any, targets: torch.Tensor) -> None:
    """Set position targets [rad]; they take effect with the scene's next write."""
    asset.actuators.target_command.position.torch[:, joint_ids] = targets


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
        self._asset.actuators.target_command.effort.torch[:, self._joint_ids] = self.processed_actions
