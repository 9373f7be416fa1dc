"""The goals of a track, the commanded speed, and what has to be remembered from step to step.

Rewards, terminations and observations are small functions that read :class:`GoalsCommand`. It takes in a policy step
once, when the first of them asks (:meth:`GoalsCommand.track`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import CommandTerm
from isaaclab.utils.array import index_fill_
from isaaclab.utils.math import wrap_to_pi

from epo_tasks.common.host import any_ended, masked_mean
from epo_tasks.parkour.terrain.tracks import GOALS

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.sensors import ContactSensor

    from epo_tasks.parkour.terrain.importer import ParkourTerrainImporter

    from .goals_cfg import GoalsCommandCfg


class GoalsCommand(CommandTerm):
    """Eight goals one after the other, at a speed that is drawn anew every few seconds."""

    cfg: GoalsCommandCfg

    def __init__(self, cfg: GoalsCommandCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term.

        Args:
            cfg: The config.
            env: The environment; its terrain is a parkour field.
        """
        self.robot: Articulation = env.scene[cfg.asset_name]
        self.sensor: ContactSensor = env.scene[cfg.sensor_name]
        self.terrain: ParkourTerrainImporter = env.scene.terrain
        num, device = env.num_envs, env.device
        self.feet = torch.tensor(self.sensor.find_sensors(cfg.feet)[0], device=device)
        flat_columns = torch.tensor([kind == "flat" for kind in self.terrain.column_types], device=device)
        self.flat = flat_columns[self.terrain.terrain_types]
        """Whether a robot's track is of the flat type; never changes. Shape is (num_envs,)."""
        self.speed = torch.zeros(num, device=device)
        """Commanded speed [m/s]. Shape is (num_envs,)."""
        self.goals = torch.zeros(num, GOALS, 3, device=device)
        """Goals of a robot's track in the world. Shape is (num_envs, 8, 3)."""
        self.reached = torch.zeros(num, dtype=torch.long, device=device)
        """Number of goals reached, which is the index of the current one. Shape is (num_envs,)."""
        self.steps_at_goal = torch.zeros(num, dtype=torch.long, device=device)
        self.direction = torch.zeros(num, 2, device=device)
        """Unit vector from the base to the current goal. Shape is (num_envs, 2)."""
        self.heading_error = torch.zeros(num, device=device)
        """Angle from the robot's heading to the current goal, in (-pi, pi] [rad]. Shape is (num_envs,)."""
        self.seen_heading_errors = torch.zeros(num, 2, device=device)
        """Heading errors to the current and the next goal, as of the last look. Shape is (num_envs, 2)."""
        self.feet_contact = torch.zeros(num, len(self.feet), dtype=torch.bool, device=device)
        """Whether a foot has contact, or had in the step before. Shape is (num_envs, 4)."""
        self._contact_before = torch.zeros_like(self.feet_contact)
        self._rows = torch.arange(num, device=device)
        self._tracked_step = -1
        env.extras["terrain_level"] = self.terrain.terrain_levels
        super().__init__(cfg, env)

    @property
    def command(self) -> torch.Tensor:
        """The commanded speed [m/s]. Shape is (num_envs, 1)."""
        return self.speed.unsqueeze(-1)

    @property
    def finished(self) -> torch.Tensor:
        """Whether all goals were reached. Shape is (num_envs,)."""
        return self.reached >= GOALS

    def track(self) -> GoalsCommand:
        """Take in the present policy step, if that has not happened yet, and return self."""
        if self._tracked_step == self._env.common_step_counter:
            return self
        self._tracked_step = self._env.common_step_counter
        position = self.robot.data.root_link_pos_w.torch[:, :2]
        self.steps_at_goal += (self._goal(0) - position).norm(dim=-1) < self.cfg.reach_distance
        passed = self.steps_at_goal > self.cfg.reach_steps
        self.reached += passed
        self.steps_at_goal = torch.where(passed, 0, self.steps_at_goal)
        self._aim()
        contact = self.sensor.data.net_forces_w.torch[:, self.feet].norm(dim=-1) > self.cfg.contact_force
        self.feet_contact = contact | self._contact_before
        self._contact_before = contact
        return self

    def compute(self, dt: float) -> None:
        """Draw new speeds where it is time; Isaac Lab's own would ask the device which environments that are."""
        self.time_left -= dt
        due = self.time_left <= 0.0
        self.time_left = torch.where(due, self._uniform(self.cfg.resampling_time_range), self.time_left)
        self.speed = torch.where(due, self._uniform(self.cfg.speed_range), self.speed)
        self.command_counter += due
        self._update_command()

    def reset(self, env_ids: Sequence[int] | slice | None = None) -> dict[str, Any]:
        """Log the episodes that ended and begin new ones."""
        ids = slice(None) if env_ids is None else env_ids
        ended = self._env.episode_length_buf[ids] > 0
        if any_ended(ids, ended):
            self._env.extras.setdefault("log", {}).update(
                {
                    "Metrics/terrain_level": self.terrain.terrain_levels.float().mean(),
                    "Metrics/success_rate": masked_mean(self.finished[ids].float(), ended),
                    "Metrics/goals": masked_mean(self.reached[ids].float(), ended),
                }
            )
        super().reset(env_ids)
        tiles = self.terrain.terrain_levels[ids], self.terrain.terrain_types[ids]
        self.goals[ids] = self.terrain.flat_patches["goals"][tiles]
        for counter in (self.reached, self.steps_at_goal, self.feet_contact, self._contact_before):
            index_fill_(counter, ids, 0)
        self._aim()
        self.seen_heading_errors[ids] = self._heading_errors()[ids]
        return {}

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return what belongs to a checkpoint: the levels."""
        return {"terrain_levels": self.terrain.terrain_levels.clone()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore the levels and begin new episodes there."""
        levels = state["terrain_levels"]
        # a run may go on with another number of robots
        self.terrain.set_levels(levels[torch.arange(self.num_envs) % len(levels)])
        # an episode without a step is not judged by the curriculum
        self._env.episode_length_buf.zero_()
        self._env.reset()

    def outline(self) -> torch.Tensor:
        """Return a pole on every goal for a picture, in world coordinates. Shape is (num_envs, 8, 2, 3)."""
        return torch.stack([self.goals, self.goals + self.goals.new_tensor([0.0, 0.0, 0.4])], dim=2)

    def _goal(self, ahead: int) -> torch.Tensor:
        """Return the current goal or one ahead of it; the last one repeats. Shape is (num_envs, 2)."""
        return self.goals[self._rows, (self.reached + ahead).clamp(max=GOALS - 1), :2]

    def _heading_errors(self) -> torch.Tensor:
        """Return the angles to the current and the next goal. Shape is (num_envs, 2)."""
        position = self.robot.data.root_link_pos_w.torch[:, :2]
        way = torch.stack([self._goal(0), self._goal(1)], dim=1) - position.unsqueeze(1)
        return wrap_to_pi(torch.atan2(way[..., 1], way[..., 0]) - self.robot.data.heading_w.torch.unsqueeze(-1))

    def _aim(self) -> None:
        way = self._goal(0) - self.robot.data.root_link_pos_w.torch[:, :2]
        self.direction = way / way.norm(dim=-1, keepdim=True).clamp(min=1e-5)
        self.heading_error = self._heading_errors()[:, 0]

    def _uniform(self, bounds: tuple[float, float]) -> torch.Tensor:
        return torch.empty(self.num_envs, device=self.device).uniform_(*bounds)

    def _resample_command(self, env_ids: Sequence[int] | slice) -> None:
        self.speed[env_ids] = self.speed[env_ids].uniform_(*self.cfg.speed_range)

    def _update_command(self) -> None:
        if self._env.common_step_counter % self.cfg.look_interval == 0:
            self.seen_heading_errors = self._heading_errors()

    def _update_metrics(self) -> None:
        """Nothing: :meth:`reset` logs whole episodes."""


def tracked(env: ManagerBasedRLEnv) -> GoalsCommand:
    """Return the goals with this step taken in."""
    return goals_of(env).track()


def goals_of(env: ManagerBasedRLEnv) -> GoalsCommand:
    """Return the goals as they are."""
    term = env.command_manager.get_term("goals")
    assert isinstance(term, GoalsCommand)
    return term
