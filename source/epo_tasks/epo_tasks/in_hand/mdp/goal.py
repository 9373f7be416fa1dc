"""The orientation that the cube shall have, and how often it had it.

Rewards and terminations are small functions that read :class:`OrientationGoal`. It takes in a control step once, when
the first of them asks (:meth:`OrientationGoal.track`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import CommandTerm
from isaaclab.markers import VisualizationMarkers
from isaaclab.utils.array import index_fill_
from isaaclab.utils.math import quat_conjugate, quat_mul

from epo_tasks.common.host import any_ended, masked_mean
from epo_tasks.common.outline import box_outline

if TYPE_CHECKING:
    from isaaclab.assets import RigidObject
    from isaaclab.envs import ManagerBasedRLEnv

    from .goal_cfg import OrientationGoalCfg


def turned_about_x_and_y(count: int, device: str) -> torch.Tensor:
    """Return random orientations: a turn about y by U(-pi, pi), then one about x. Not uniform over all rotations."""
    half = torch.pi * (torch.rand(2, count, device=device) - 0.5)
    (sin_x, sin_y), (cos_x, cos_y) = half.sin(), half.cos()
    # the product of (sin x, 0, 0, cos x) and (0, sin y, 0, cos y)
    return torch.stack([sin_x * cos_y, cos_x * sin_y, sin_x * sin_y, cos_x * cos_y], dim=-1)


class OrientationGoal(CommandTerm):
    """Goal pose of all environments. Positions are in the frames of the environments."""

    cfg: OrientationGoalCfg

    def __init__(self, cfg: OrientationGoalCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        self.object: RigidObject = env.scene[cfg.object_name]
        num, device = env.num_envs, env.device
        start = self.object.data.default_root_pose.torch[:, :3]
        self.goal_pos = start + start.new_tensor(cfg.position_offset)
        self.goal_quat = torch.zeros(num, 4, device=device)
        self.goal_quat[:, 3] = 1.0
        # what this step brought
        self.error = torch.zeros(num, device=device)
        """Angle between cube and goal [rad]."""
        self.distance = torch.zeros(num, device=device)
        """Distance of the cube from the goal position [m]."""
        self.success = torch.zeros(num, dtype=torch.bool, device=device)
        self.successes = torch.zeros(num, device=device)
        """Goals reached in the running episode."""
        self._tracked_step = -1
        super().__init__(cfg, env)

    @property
    def command(self) -> torch.Tensor:
        """Position and orientation (x, y, z, w) of the goal. Shape is (num_envs, 7)."""
        return torch.cat([self.goal_pos, self.goal_quat], dim=-1)

    @property
    def object_pos(self) -> torch.Tensor:
        """Position of the cube [m]. Shape is (num_envs, 3)."""
        return self.object.data.root_link_pos_w.torch - self._env.scene.env_origins

    @property
    def difference(self) -> torch.Tensor:
        """Rotation from goal to cube, as a quaternion (x, y, z, w). Shape is (num_envs, 4)."""
        return quat_mul(self.object.data.root_link_quat_w.torch, quat_conjugate(self.goal_quat))

    def track(self) -> OrientationGoal:
        """Take in the present control step, if that has not happened yet, and return self."""
        if self._tracked_step == self._env.common_step_counter:
            return self
        self._tracked_step = self._env.common_step_counter
        self.error = 2.0 * self.difference[:, :3].norm(dim=-1).clamp(max=1.0).asin()
        self.distance = (self.object_pos - self.goal_pos).norm(dim=-1)
        self.success = self.error <= self.cfg.tolerance
        self.successes += self.success
        return self

    def compute(self, dt: float) -> None:
        """Set new goals where the last one was reached and the episode goes on."""
        reached = self.success & ~self._env.reset_buf
        drawn = turned_about_x_and_y(self.num_envs, self.device)
        self.goal_quat = torch.where(reached.unsqueeze(-1), drawn, self.goal_quat)
        self.command_counter += reached

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> dict[str, Any]:
        """Begin new episodes and log those that ended."""
        ids = slice(None) if env_ids is None else env_ids
        ended = self._env.episode_length_buf[ids] > 0
        if any_ended(ids, ended):
            # Isaac Lab's measure: of the goals that an episode was given, the share that it reached
            share = self.successes[ids] / (self.successes[ids] + 1.0)
            log = self._env.extras.setdefault("log", {})
            log["Metrics/success_rate"] = masked_mean(share, ended)
        super().reset(env_ids)
        index_fill_(self.successes, ids, 0.0)
        index_fill_(self.success, ids, False)
        return {}

    def outline(self) -> torch.Tensor:
        """Return line segments that show the goal in a picture, in world coordinates. Shape is (num_envs, n, 2, 3)."""
        return box_outline(self._marker_pos(), self.goal_quat, torch.full_like(self.goal_pos, self.cfg.edge))

    def _marker_pos(self) -> torch.Tensor:
        return self.goal_pos + self.goal_pos.new_tensor(self.cfg.marker_offset) + self._env.scene.env_origins

    def _resample_command(self, env_ids: torch.Tensor | slice | Sequence[int]) -> None:
        count = len(self.goal_quat[env_ids])
        self.goal_quat[env_ids] = turned_about_x_and_y(count, self.device)

    def _update_metrics(self) -> None:
        """Nothing: :meth:`reset` logs whole episodes."""

    def _update_command(self) -> None:
        """Nothing: goals change in :meth:`compute`."""

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        if debug_vis and not hasattr(self, "_marker"):
            self._marker = VisualizationMarkers(self.cfg.marker)
        if hasattr(self, "_marker"):
            self._marker.set_visibility(debug_vis)

    def _debug_vis_callback(self, event: Any) -> None:
        edges = torch.full_like(self.goal_pos, self.cfg.edge)
        self._marker.visualize(self._marker_pos(), self.goal_quat, edges)
