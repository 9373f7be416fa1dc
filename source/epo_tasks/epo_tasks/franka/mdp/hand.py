"""Points of the hand."""

from __future__ import annotations

import torch
from isaaclab.assets import Articulation
from isaaclab.utils.math import quat_apply

from epo_tasks.robots.franka_panda import FINGER_JOINTS, FINGERS, FINGERTIPS, GRIP_SITE, HAND


class Hand:
    """Grip site, fingertips and fingers of a Franka arm."""

    def __init__(self, robot: Articulation, origins: torch.Tensor) -> None:
        """Look up where things are.

        Args:
            robot: The arm.
            origins: Origins of the environments in the world [m]. Shape is (num_envs, 3).
        """
        device = origins.device
        self._robot = robot
        self._origins = origins
        self._hand = robot.body_names.index(HAND)
        bodies = [self._hand, *(robot.body_names.index(name) for name in FINGERS)]
        self._bodies = torch.tensor(bodies, device=device)
        self._offsets = torch.tensor((GRIP_SITE, *FINGERTIPS), device=device).expand(len(origins), -1, -1)
        self._fingers = torch.tensor([robot.joint_names.index(name) for name in FINGER_JOINTS], device=device)

    def points(self) -> torch.Tensor:
        """Return grip site, left and right fingertip in the environment's frame [m]. Shape is (num_envs, 3, 3)."""
        pose = self._robot.data.body_link_pose_w.torch.index_select(1, self._bodies)
        return pose[..., :3] + quat_apply(pose[..., 3:], self._offsets) - self._origins.unsqueeze(1)

    def pose(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return position [m] and quaternion (x, y, z, w) of the grip site in the environment's frame."""
        pose = self._robot.data.body_link_pose_w.torch[:, self._hand]
        return pose[:, :3] + quat_apply(pose[:, 3:], self._offsets[:, 0]) - self._origins, pose[:, 3:]

    def fingers(self) -> torch.Tensor:
        """Return how far left and right finger are open [m]. Shape is (num_envs, 2)."""
        return self._robot.data.joint_pos.torch.index_select(1, self._fingers)
