"""The goal of the Allegro-Kuka tasks, and everything that is counted and remembered on the way to it.

Rewards, terminations and observations are small functions that read :class:`GoalCommand`. It takes in a control step
once, when the first of them asks (:meth:`GoalCommand.track`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import warp as wp
from isaaclab.managers import CommandTerm
from isaaclab.markers import VisualizationMarkers
from isaaclab.utils.array import index_fill_
from isaaclab.utils.math import quat_apply, random_orientation
from isaaclab_physx.physics import PhysxCfg

from epo_lab.base.processes import joint_mean
from epo_tasks.allegro_kuka.cuboids import EDGE
from epo_tasks.common.host import HostFlag, any_ended
from epo_tasks.common.outline import box_outline
from epo_tasks.robots.kuka_allegro import FACTS

if TYPE_CHECKING:
    from isaaclab.assets import Articulation, RigidObject
    from isaaclab.envs import ManagerBasedRLEnv

    from .goal_cfg import GoalCommandCfg

POINTS = ("palm_center", "index_tip", "middle_tip", "ring_tip", "thumb_tip")
"""Reference points of an arm, in this order."""

CORNERS = ((1, 1, 1), (1, 1, -1), (-1, -1, 1), (-1, -1, -1))
"""Signs of the corners at which poses are compared."""

LATCHED = ("successes", "success_rate", "true_objective", "lifted")
"""What is kept of an environment's last finished episode."""

START_HEIGHT = 0.63
"""Nominal height at which the object is released [m]."""

LOOK_INTERVAL = 16
"""Steps between two looks at whether a curriculum may go on: a look waits for the device, and for all processes.
16 is a roll-out of the tasks' agents; a change that is due comes up to 15 steps late."""


class GoalCommand(CommandTerm):
    """Goal pose, records and counters of all environments. Positions are in the frames of the environments."""

    cfg: GoalCommandCfg

    def __init__(self, cfg: GoalCommandCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term.

        Args:
            cfg: The config.
            env: The environment; its config names the scales of the objects.
        """
        self.object: RigidObject = env.scene[cfg.object_name]
        self.arms: list[Articulation] = [env.scene[name] for name in cfg.arm_names]
        num, device = env.num_envs, env.device
        scales = torch.as_tensor(env.cfg.object_scales(), dtype=torch.float, device=device)
        self.object_scales = scales[torch.arange(num, device=device) % len(scales)]
        """Edges of each environment's object, in multiples of 5 cm. Shape is (num_envs, 3)."""
        signs = torch.tensor(CORNERS if cfg.pose else ((0, 0, 0),), dtype=torch.float, device=device)
        self._offsets = signs * (0.5 * cfg.keypoint_scale * EDGE * self.object_scales).unsqueeze(1)
        self._points = [self._reference_points(arm) for arm in self.arms]
        places = {"object_start": cfg.object_start, "place": cfg.place}
        self._corners = {name: torch.tensor([at.x, at.y, at.z], device=device).T for name, at in places.items()}

        def zeros(*shape: int, dtype: torch.dtype = torch.float) -> torch.Tensor:
            return torch.zeros(num, *shape, dtype=dtype, device=device)

        tips, points = 4 * len(self.arms), len(signs)
        self.goal_pos, self.goal_quat = zeros(3), zeros(4)
        self.goal_quat[:, 3] = 1.0
        self.goal_keypoints = zeros(points, 3)
        # measured once a step
        self.palms, self.tips = zeros(len(self.arms), 3), zeros(tips, 3)
        self.object_pos, self.keypoints = zeros(3), zeros(points, 3)
        self.distance, self.tip_distances = zeros(), zeros(tips)
        self._measured = False
        # records; infinite until the first step that counts
        self.best_distance, self.best_tip_distances = zeros(), zeros(tips)
        # counters and flags
        self.lifted, self.ever_lifted = zeros(dtype=torch.bool), zeros(dtype=torch.bool)
        self.near_count, self.goal_steps = zeros(dtype=torch.long), zeros(dtype=torch.long)
        self.steps_since_placed = zeros(dtype=torch.long)
        self.successes, self.last_successes = zeros(), zeros()
        self.last_episode = {name: torch.full_like(self.successes, torch.nan) for name in LATCHED}
        """What each environment's last finished episode brought; NaN before the first. Handed out in the extras."""
        # what this step brought
        self.height, self.reach_gain, self.progress = zeros(), zeros(), zeros()
        self.just_lifted, self.near = zeros(dtype=torch.bool), zeros(dtype=torch.bool)
        self.success = zeros(dtype=torch.bool)
        self._any_success = HostFlag(device)
        self._tracked_step = -1
        # curricula
        self.goal_length = cfg.goal_length
        """Steps without a success that end an episode; one for all environments."""
        self.tolerance = torch.tensor(cfg.tolerance[0], device=device)
        """Current tolerance [m], before the keypoint scale; one for all environments."""
        self._steps_since_change = 0
        env.extras["successes"] = self.last_successes
        env.extras["last_episode"] = self.last_episode
        super().__init__(cfg, env)

    @property
    def command(self) -> torch.Tensor:
        """Position and orientation (x, y, z, w) of the goal. Shape is (num_envs, 7)."""
        return torch.cat([self.goal_pos, self.goal_quat], dim=-1)

    def true_objective(self, successes: torch.Tensor) -> torch.Tensor:
        """Return how far the curriculum is, and the successes: one number to compare training runs by."""
        start, end = self.cfg.tolerance
        if start == end:
            return 1.0 + successes
        share = (start - self.tolerance) / (start - end)
        return share + torch.where(self.tolerance > end, 0.01, 1.0) * successes

    def track(self) -> GoalCommand:
        """Take in the present control step, if that has not happened yet, and return self."""
        if self._tracked_step == self._env.common_step_counter:
            return self
        self._tracked_step = self._env.common_step_counter
        self.measure(again=True)
        self.goal_steps += 1
        self.steps_since_placed += 1

        self.height = 0.05 + self.object_pos[:, 2] - START_HEIGHT
        lifted = self.lifted | (self.height > self.cfg.lift_height)
        self.just_lifted = lifted & ~self.lifted
        self.lifted = lifted
        self.ever_lifted |= lifted

        record = torch.where(self.best_tip_distances.isinf(), self.tip_distances, self.best_tip_distances)
        self.reach_gain = (record - self.tip_distances).clamp(0.0, 10.0).sum(dim=-1)
        self.best_tip_distances = torch.minimum(record, self.tip_distances)

        record = torch.where(self.best_distance.isinf(), self.distance, self.best_distance)
        self.progress = (record - self.distance).clamp(0.0, 100.0)
        self.best_distance = torch.minimum(record, self.distance)

        self.near = self.distance <= self.cfg.keypoint_scale * self.tolerance
        self.near_count += self.near
        self.success = self.near_count >= self.cfg.near_steps
        self._any_success.set(self.success)
        self.successes += self.success
        self.goal_steps = torch.where(self.success, 0, self.goal_steps)
        return self

    def measure(self, *, again: bool = False) -> GoalCommand:
        """Compute where hands, object and goal are, unless that is known, and return self."""
        if self._measured and not again:
            return self
        origins = self._env.scene.env_origins
        points = torch.stack([self._arm_points(*arm) for arm in self._points], dim=1) - origins[:, None, None]
        self.palms = points[:, :, 0]
        self.tips = points[:, :, 1:].flatten(1, 2)
        self.object_pos = self.object.data.root_link_pos_w.torch - origins
        quat = self.object.data.root_link_quat_w.torch
        self.keypoints = self.object_pos.unsqueeze(1) + quat_apply(quat.unsqueeze(1), self._offsets)
        self.distance = (self.keypoints - self.goal_keypoints).norm(dim=-1).amax(dim=-1)
        self.tip_distances = (self.tips - self.object_pos.unsqueeze(1)).norm(dim=-1)
        self._measured = True
        return self

    def compute(self, dt: float) -> None:
        """Set new goals where the last one was reached and the episode goes on, and look at the tolerance."""
        reached = self.success & ~self._env.reset_buf
        # Note: Isaac Sim's PhysX makes indices of a mask, and there have to be some
        takes_masks = not isinstance(self._env.cfg.sim.physics, PhysxCfg)
        if self._any_success and (takes_masks or bool(reached.any())):
            self._set_goals(reached)
            self.command_counter += reached
            self.near_count = torch.where(reached, 0, self.near_count)
            self.best_distance = torch.where(reached, torch.inf, self.best_distance)
            if self.cfg.replace_object:
                self._release(reached)
                self.lifted &= ~reached
                self.best_tip_distances = torch.where(reached.unsqueeze(-1), torch.inf, self.best_tip_distances)
            self._measured = False
        self._adapt_tolerance()

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> dict[str, Any]:
        """Begin new episodes and log those that ended."""
        ids = slice(None) if env_ids is None else env_ids
        ended = self._env.episode_length_buf[ids] > 0
        self._latch(ids, ended)
        if any_ended(ids, ended):
            self._env.extras.setdefault("log", {}).update(self._episode_log(ids, ended))
        super().reset(env_ids)
        counters = self.near_count, self.goal_steps, self.successes, self.lifted, self.ever_lifted, self.success
        for counter in counters:
            index_fill_(counter, ids, 0)
        for record in (self.best_distance, self.best_tip_distances):
            index_fill_(record, ids, torch.inf)
        self._measured = False
        return {}

    def place_object(self, env_ids: torch.Tensor | slice) -> None:
        """Release the object above the table, at rest and turned at random."""
        self._release(self._mask(env_ids))

    def state_dict(self) -> dict[str, Any]:
        """Return what belongs to a checkpoint: the tolerance's curriculum."""
        return {
            "tolerance": self.tolerance.clone(),
            "steps_since_change": self._steps_since_change,
            "last_successes": self.last_successes.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.tolerance.copy_(state["tolerance"])
        # a tensor in checkpoints of older versions
        self._steps_since_change = int(state["steps_since_change"])
        last = state.get("last_successes")
        if last is not None:
            # a run may go on with another number of environments
            self.last_successes.copy_(last[torch.arange(self.num_envs) % len(last)])

    def end_episodes(self, env_ids: torch.Tensor) -> None:
        """Let the time for the goals be over with the next step."""
        self.goal_steps[env_ids] = self.cfg.goal_length

    def outline(self) -> torch.Tensor:
        """Return line segments that show the goal in a picture, in world coordinates. Shape is (num_envs, n, 2, 3)."""
        edges = EDGE * self.object_scales if self.cfg.pose else torch.full_like(self.goal_pos, 0.03)
        return box_outline(self.goal_pos + self._env.scene.env_origins, self.goal_quat, edges)

    def _resample_command(self, env_ids: torch.Tensor | slice) -> None:
        self._set_goals(self._mask(env_ids))

    def _set_goals(self, mask: torch.Tensor) -> None:
        """Draw new goals, and keep those of environments outside of the mask."""
        position = self._draw("place")
        if self.cfg.bucket_name is not None:
            self._move_bucket(mask, position)
            position[:, 2] += self.cfg.bucket_depth
        self.goal_pos = torch.where(mask.unsqueeze(-1), position, self.goal_pos)
        if self.cfg.pose:
            drawn = random_orientation(self.num_envs, self.device)
            self.goal_quat = torch.where(mask.unsqueeze(-1), drawn, self.goal_quat)
        turned = quat_apply(self.goal_quat.unsqueeze(1), self._offsets)
        self.goal_keypoints = self.goal_pos.unsqueeze(1) + turned

    def _release(self, mask: torch.Tensor) -> None:
        """Put the objects of a mask above the table, at rest and turned at random."""
        position = self._draw("object_start") + self._env.scene.env_origins
        pose = torch.cat([position, random_orientation(self.num_envs, self.device)], dim=1)
        rows = wp.from_torch(mask)
        self.object.write_root_pose_to_sim_mask(root_pose=pose, env_mask=rows)
        self.object.write_root_velocity_to_sim_mask(root_velocity=torch.zeros_like(pose[:, :6]), env_mask=rows)
        self.steps_since_placed = torch.where(mask, 0, self.steps_since_placed)

    def _move_bucket(self, mask: torch.Tensor, position: torch.Tensor) -> None:
        pose = torch.zeros(self.num_envs, 7, device=self.device)
        pose[:, :3] = position + self._env.scene.env_origins
        pose[:, 6] = 1.0
        bucket: RigidObject = self._env.scene[self.cfg.bucket_name]
        bucket.write_root_pose_to_sim_mask(root_pose=pose, env_mask=wp.from_torch(mask))

    def _adapt_tolerance(self) -> None:
        """Shrink the tolerance if enough time has passed and the last episodes of all processes were good enough."""
        start, end = self.cfg.tolerance
        if start == end:
            return
        self._steps_since_change += 1
        overdue = self._steps_since_change - self.cfg.tolerance_interval
        if overdue < 0 or overdue % LOOK_INTERVAL != 0:
            return
        if float(joint_mean(self.last_successes)) >= self.cfg.tolerance_successes:
            self.tolerance.mul_(self.cfg.tolerance_factor).clamp_(min=end, max=start)
            self._steps_since_change = 0

    def _latch(self, ids: Any, ended: torch.Tensor) -> None:
        """Keep what the episodes that ended brought."""
        successes = self.successes[ids]
        brought = (successes, successes > 0, self.true_objective(successes), self.ever_lifted[ids])
        self.last_successes[ids] = torch.where(ended, successes, self.last_successes[ids])
        for last, value in zip(self.last_episode.values(), brought, strict=True):
            last[ids] = torch.where(ended, value.float(), last[ids])

    def _episode_log(self, ids: Any, ended: torch.Tensor) -> dict[str, torch.Tensor | float]:
        distance = self.best_distance[ids]
        seen = (ended & distance.isfinite()).float()
        return {
            **{f"Metrics/{name}": last.nanmean() for name, last in self.last_episode.items()},
            "Metrics/tolerance": self.tolerance.clone(),
            "Metrics/goal_length": float(self.goal_length),
            "Metrics/closest_distance": torch.where(distance.isfinite(), seen * distance, 0.0).sum()
            / seen.sum().clamp(min=1.0),
        }

    def _draw(self, name: str, count: int | None = None) -> torch.Tensor:
        """Return positions in the place that the config has under this name, by default one an environment."""
        count = self.num_envs if count is None else count
        low, high = self._corners[name]
        position = low + (high - low) * torch.rand(count, 3, device=self.device)
        if getattr(self.cfg, name).either_side:
            position[:, 0] *= torch.where(torch.rand(count, device=self.device) < 0.5, -1.0, 1.0)
        return position

    def _reference_points(self, arm: Articulation) -> tuple[Articulation, torch.Tensor, torch.Tensor]:
        frames = [FACTS.extras["frame_offsets"][name] for name in POINTS]
        bodies = torch.tensor([arm.body_names.index(frame["link"]) for frame in frames], device=arm.device)
        return arm, bodies, torch.tensor([frame["xyz"] for frame in frames], device=arm.device)

    @staticmethod
    def _arm_points(arm: Articulation, bodies: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        pose = arm.data.body_link_pose_w.torch[:, bodies]
        return pose[..., :3] + quat_apply(pose[..., 3:], offsets.expand(len(pose), -1, -1))

    def _mask(self, env_ids: torch.Tensor | slice | Sequence[int]) -> torch.Tensor:
        mask = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        index_fill_(mask, env_ids, True)
        return mask

    def _update_metrics(self) -> None:
        """Nothing: :meth:`reset` logs whole episodes."""

    def _update_command(self) -> None:
        """Nothing: goals change in :meth:`compute`."""

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        if debug_vis and not hasattr(self, "_marker"):
            self._marker = VisualizationMarkers(self.cfg.pose_marker if self.cfg.pose else self.cfg.point_marker)
        if hasattr(self, "_marker"):
            self._marker.set_visibility(debug_vis)

    def _debug_vis_callback(self, event: Any) -> None:
        scales = EDGE * self.object_scales if self.cfg.pose else None
        self._marker.visualize(self.goal_pos + self._env.scene.env_origins, self.goal_quat, scales)
