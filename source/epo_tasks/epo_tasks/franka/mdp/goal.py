"""Where the cubes are, what is reached, and where an episode starts.

Rewards, terminations and observations are small functions that read these terms. A term takes in a control step once,
when the first of them asks (:meth:`CubeGoal.track`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import CommandTerm
from isaaclab.markers import VisualizationMarkers
from isaaclab.utils.array import index_fill_

from epo_tasks.common.host import any_ended, masked_mean
from epo_tasks.common.outline import box_outline

from .hand import Hand

if TYPE_CHECKING:
    from isaaclab.assets import RigidObject
    from isaaclab.envs import ManagerBasedRLEnv

    from .goal_cfg import CubeGoalCfg, PushGoalCfg, StackGoalCfg

SHARPNESS = 10.0
"""How fast a reward falls with a distance [1/m]: 1 - tanh(10 d)."""

TRIES = 32
"""Draws of a place for the cube. One fails with a chance of 0.36 at most, so that all fail once in 10^14 episodes."""


def closeness(distance: torch.Tensor) -> torch.Tensor:
    """Return 1 at distance 0 [m], falling to 0."""
    return 1.0 - torch.tanh(SHARPNESS * distance)


def draw_places(
    count: int, half_range: float, least_distance: float, device: str | torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two random places on a square, the second drawn again until it is away from the first.

    Args:
        count: Number of pairs.
        half_range: Half the edge of the square [m].
        least_distance: Least distance of the two [m].
        device: Where they are made.

    Returns:
        Both places (x, y) [m]. Shapes are (count, 2).
    """
    drawn = half_range * (2.0 * torch.rand(count, TRIES + 1, 2, device=device) - 1.0)
    first, others = drawn[:, 0], drawn[:, 1:]
    apart = (others - first.unsqueeze(1)).norm(dim=-1) >= least_distance
    chosen = apart.int().argmax(dim=1)
    return first, others.gather(1, chosen.view(-1, 1, 1).expand(-1, 1, 2)).squeeze(1)


class CubeGoal(CommandTerm):
    """A cube that shall get somewhere. Positions are in the frames of the environments."""

    cfg: CubeGoalCfg

    def __init__(self, cfg: CubeGoalCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        self.cube: RigidObject = env.scene[cfg.cube_name]
        self.hand = Hand(env.scene["robot"], env.scene.env_origins)
        num, device = env.num_envs, env.device
        self.steps = torch.zeros(num, dtype=torch.long, device=device)
        """Steps of the running episode, this one included."""
        self.success = torch.zeros(num, dtype=torch.bool, device=device)
        self.lifted = torch.zeros(num, dtype=torch.bool, device=device)
        self._least_distance = math.sqrt(2.0) * (cfg.edge + cfg.goal_edge)
        self._tracked_step = -1
        self._succeeded = torch.full((num,), torch.nan, device=device)
        self._steps_to_success = torch.full((num,), torch.nan, device=device)
        env.extras["last_episode"] = {"success_rate": self._succeeded}
        super().__init__(cfg, env)

    @property
    def command(self) -> torch.Tensor:
        """Position of the goal [m]. Shape is (num_envs, 3)."""
        return self.goal_pos

    @property
    @abstractmethod
    def goal_pos(self) -> torch.Tensor:
        """Position of the goal, or of the cube to stack on [m]. Shape is (num_envs, 3)."""

    @property
    def cube_pos(self) -> torch.Tensor:
        """Position of the cube [m]. Shape is (num_envs, 3)."""
        return self.cube.data.root_link_pos_w.torch - self._env.scene.env_origins

    @property
    def time_is_up(self) -> torch.Tensor:
        """Whether the episode ends with this step for lack of time."""
        return self.steps >= self._env.max_episode_length

    @property
    def decided(self) -> torch.Tensor:
        """Whether the task ends the episode with this step, whatever the clock says."""
        return self.success

    @property
    def steps_left(self) -> torch.Tensor:
        """Steps after this one, plus one: the whole episode's pay is by this clock."""
        return self._env.max_episode_length + 1 - self.steps

    def track(self) -> CubeGoal:
        """Take in the present control step, if that has not happened yet, and return self."""
        if self._tracked_step != self._env.common_step_counter:
            self._tracked_step = self._env.common_step_counter
            self.steps = self._env.episode_length_buf.clone()
            cube = self.cube_pos
            height = cube[:, 2] - self.cfg.table_top
            self.lifted = height - self.cfg.edge > self.cfg.lift
            self._measure(cube, height, self.goal_pos)
        return self

    @abstractmethod
    def _measure(self, cube: torch.Tensor, height: torch.Tensor, goal: torch.Tensor) -> None:
        """Take in the positions of cube and goal, and the cube's height above the table [m]."""

    @abstractmethod
    def _episode_log(self, ids: Any, ended: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return what the episodes that ended tell."""

    @abstractmethod
    def _place_goal(self, ids: Any, pose: torch.Tensor) -> None:
        """Put the goal at poses in the environment's frame."""

    def compute(self, dt: float) -> None:
        """Nothing: a goal stays for the whole episode. Isaac Lab's own asks the device whether one is over."""

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> dict[str, Any]:
        """Log the episodes that ended, and place goal and cube for new ones."""
        ids = slice(None) if env_ids is None else env_ids
        ended = self._env.episode_length_buf[ids] > 0
        if any_ended(ids, ended):
            success = self.success[ids]
            self._succeeded[ids] = torch.where(ended, success.float(), self._succeeded[ids])
            steps, known = self.steps[ids].float(), self._steps_to_success[ids]
            self._steps_to_success[ids] = torch.where(ended & success, steps, known)
            log = self._env.extras.setdefault("log", {})
            log["Metrics/success_rate"] = masked_mean(success.float(), ended)
            longest = float(self._env.max_episode_length)
            log["Metrics/steps_to_success"] = torch.nan_to_num(self._steps_to_success.nanmean(), nan=longest)
            log.update(self._episode_log(ids, ended))
        super().reset(env_ids)
        index_fill_(self.success, ids, False)
        return {}

    def _resample_command(self, env_ids: torch.Tensor | slice | Sequence[int]) -> None:
        """Place goal and cube on the table, apart from each other, at rest."""
        count = len(self.success[env_ids])
        goal, cube = draw_places(count, self.cfg.start_range, self._least_distance, self.device)
        self._place_goal(env_ids, self._upright(goal, self.cfg.goal_height))
        place_at_rest(self.cube, self._upright(cube, self.cfg.table_top + self.cfg.edge / 2.0), self._env, env_ids)

    def _upright(self, place: torch.Tensor, height: float) -> torch.Tensor:
        """Return poses at these places and this height [m], turned at random about the vertical."""
        half_yaw = 0.5 * self.cfg.start_yaw * (2.0 * torch.rand_like(place[:, :1]) - 1.0)
        zero = torch.zeros_like(half_yaw)
        return torch.cat([place, torch.full_like(zero, height), zero, zero, half_yaw.sin(), half_yaw.cos()], dim=1)

    def _update_metrics(self) -> None:
        """Nothing: :meth:`reset` logs whole episodes."""

    def _update_command(self) -> None:
        """Nothing: a goal stays for the whole episode."""

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        """Nothing to show but the cubes."""

    def _debug_vis_callback(self, event: Any) -> None:
        """Nothing to show but the cubes."""


def place_at_rest(asset: RigidObject, pose: torch.Tensor, env: ManagerBasedRLEnv, env_ids: Any) -> None:
    """Put an object at poses in the environment's frame, at rest."""
    pose[:, :3] += env.scene.env_origins[env_ids]
    asset.write_root_pose_to_sim_index(root_pose=pose, env_ids=env_ids)
    asset.write_root_velocity_to_sim_index(root_velocity=torch.zeros_like(pose[:, :6]), env_ids=env_ids)


class PushGoal(CubeGoal):
    """The cube shall lie over a point of the table. The goal is seen, not felt."""

    cfg: PushGoalCfg

    def __init__(self, cfg: PushGoalCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        self._goal_pose = torch.zeros(env.num_envs, 7, device=env.device)
        self.distance = torch.zeros(env.num_envs, device=env.device)
        """Horizontal distance of the cube from the goal [m]."""
        self.near = torch.zeros(env.num_envs, device=env.device)
        """Closeness of the cube to the goal, 1 at best."""
        self.failed = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        """Whether the episode ends with this step, and the cube is not at the goal."""
        super().__init__(cfg, env)

    @property
    def goal_pos(self) -> torch.Tensor:
        """Position of the goal [m]. Shape is (num_envs, 3)."""
        return self._goal_pose[:, :3]

    @property
    def decided(self) -> torch.Tensor:
        """Whether the task ends the episode with this step: by success, or because the cube was lifted."""
        return self.success | self.lifted

    def outline(self) -> torch.Tensor:
        """Return line segments that show the goal in a picture, in world coordinates. Shape is (num_envs, n, 2, 3)."""
        return box_outline(self._marker_pos(), self._goal_pose[:, 3:], self._edges())

    def _measure(self, cube: torch.Tensor, height: torch.Tensor, goal: torch.Tensor) -> None:
        self.distance = (cube - goal)[:, :2].norm(dim=-1)
        self.near = closeness(self.distance)
        self.success = self.distance < self.cfg.tolerance
        self.failed = ~self.success & (self.lifted | self.time_is_up)

    def _episode_log(self, ids: Any, ended: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "Metrics/final_distance": masked_mean(self.distance[ids], ended),
            "Metrics/lifted": masked_mean((self.lifted & ~self.success)[ids].float(), ended),
        }

    def _place_goal(self, ids: Any, pose: torch.Tensor) -> None:
        self._goal_pose[ids] = pose

    def _marker_pos(self) -> torch.Tensor:
        return self.goal_pos + self._env.scene.env_origins

    def _edges(self) -> torch.Tensor:
        return torch.full_like(self.goal_pos, self.cfg.goal_edge)

    def _set_debug_vis_impl(self, debug_vis: bool) -> None:
        if debug_vis and not hasattr(self, "_marker"):
            self._marker = VisualizationMarkers(self.cfg.marker)
        if hasattr(self, "_marker"):
            self._marker.set_visibility(debug_vis)

    def _debug_vis_callback(self, event: Any) -> None:
        self._marker.visualize(self._marker_pos(), self._goal_pose[:, 3:], self._edges())


class StackGoal(CubeGoal):
    """The cube shall stand on a larger one, and the hand be away."""

    cfg: StackGoalCfg

    def __init__(self, cfg: StackGoalCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        self.base: RigidObject = env.scene[cfg.goal_name]
        num, device = env.num_envs, env.device
        self.reach = torch.zeros(num, device=device)
        """Closeness of hand and fingertips to the cube, 1 at best."""
        self.align = torch.zeros(num, device=device)
        """Closeness of the lifted cube to its place on the other, 1 at best."""
        self._on_top = torch.tensor([0.0, 0.0, (cfg.edge + cfg.goal_edge) / 2.0], device=device)
        self._lifted_steps = torch.zeros(num, device=device)
        self._aligned_steps = torch.zeros(num, device=device)
        super().__init__(cfg, env)

    @property
    def goal_pos(self) -> torch.Tensor:
        """Position of the cube to stack on [m]. Shape is (num_envs, 3)."""
        return self.base.data.root_link_pos_w.torch - self._env.scene.env_origins

    def _measure(self, cube: torch.Tensor, height: torch.Tensor, goal: torch.Tensor) -> None:
        distances = (self.hand.points() - cube.unsqueeze(1)).norm(dim=-1)
        self.reach = closeness(distances.mean(dim=-1))
        self.align = self.lifted * closeness((goal + self._on_top - cube).norm(dim=-1))

        # On top of the other cube, and let go
        above = (cube - goal)[:, :2].norm(dim=-1) < self.cfg.tolerance
        at_height = (height - self.cfg.goal_edge - self.cfg.edge / 2.0).abs() < self.cfg.tolerance
        self.success = above & at_height & (distances[:, 0] > self.cfg.release_distance)

        self._lifted_steps += self.lifted
        self._aligned_steps += self.align > self.cfg.aligned

    def _episode_log(self, ids: Any, ended: torch.Tensor) -> dict[str, torch.Tensor]:
        steps = self.steps[ids].clamp(min=1)
        return {
            "Metrics/lifted": masked_mean(self._lifted_steps[ids] / steps, ended),
            "Metrics/aligned": masked_mean(self._aligned_steps[ids] / steps, ended),
        }

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> dict[str, Any]:
        """Log the episodes that ended, and place both cubes for new ones."""
        super().reset(env_ids)
        ids = slice(None) if env_ids is None else env_ids
        index_fill_(self._lifted_steps, ids, 0.0)
        index_fill_(self._aligned_steps, ids, 0.0)
        return {}

    def _place_goal(self, ids: Any, pose: torch.Tensor) -> None:
        place_at_rest(self.base, pose, self._env, ids)
