"""Blocks of the observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from isaaclab.managers import ManagerTermBase, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils.math import euler_xyz_from_quat, wrap_to_pi

from .goals import goals_of

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv

SCAN_X = (-0.45, 1.2, 12)
"""First and last distance ahead of the base [m] and their number."""

SCAN_Y = (-0.75, 0.75, 11)
"""First and last distance to the left of the base [m] and their number."""


def roll_pitch(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot")) -> torch.Tensor:
    """Return roll and pitch of the base, in (-pi, pi] [rad]. Shape is (num_envs, 2)."""
    robot: Articulation = env.scene[asset_cfg.name]
    roll, pitch, _ = euler_xyz_from_quat(robot.data.root_link_quat_w.torch)
    return wrap_to_pi(torch.stack([roll, pitch], dim=-1))


def heading_errors(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the angles to the current and the next goal, as of the last look [rad]. Shape is (num_envs, 2)."""
    return goals_of(env).seen_heading_errors


def track_kind(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return (0, 1) on flat tracks and (1, 0) on others. Shape is (num_envs, 2)."""
    flat = goals_of(env).flat
    return torch.stack([~flat, flat], dim=-1).float()


def feet_contact(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return 0.5 for a foot with contact, now or a step ago, else -0.5. Shape is (num_envs, 4)."""
    return goals_of(env).feet_contact.float() - 0.5


def nothing(env: ManagerBasedRLEnv, size: int) -> torch.Tensor:
    """Return zeros, where the reference has entries that it never fills. Shape is (num_envs, size)."""
    return torch.zeros(env.num_envs, size, device=env.device)


class HeightScan(ManagerTermBase):
    """How far the ground is below a grid of points around the base, less 0.3 m, looked up every few steps.

    Heights come from the field that the mesh was made from: far cheaper than rays and the same
    (``tests/unit/locomotion/test_parkour_field.py``). Points run along x first, y inside.
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term."""
        super().__init__(cfg, env)
        self._robot: Articulation = env.scene["robot"]
        self._field = env.scene.terrain.height_field
        x, y = (torch.linspace(*line, device=env.device) for line in (SCAN_X, SCAN_Y))
        self._points = torch.cartesian_prod(x, y)
        self._scan = torch.zeros(env.num_envs, len(self._points), device=env.device)

    def __call__(self, env: ManagerBasedRLEnv, interval: int, offset: float) -> torch.Tensor:
        """Return the scan of the last look [m]. Shape is (num_envs, 132)."""
        if env.common_step_counter % interval == 0:
            self._look(slice(None))
        return self._scan

    def reset(self, env_ids=None) -> None:
        """Look at once where an episode begins."""
        self._look(slice(None) if env_ids is None else env_ids)

    def _look(self, ids) -> None:
        position = self._robot.data.root_link_pos_w.torch[ids]
        heading = self._robot.data.heading_w.torch[ids]
        cos, sin = heading.cos().unsqueeze(-1), heading.sin().unsqueeze(-1)
        x, y = self._points.unbind(dim=-1)
        points = position[:, None, :2] + torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)
        offset = self.cfg.params["offset"]
        self._scan[ids] = (position[:, 2:] - offset - self._field.surface(points)).clamp(-1.0, 1.0)


class RobotProperties(ManagerTermBase):
    """What was drawn for a robot at the start; it never changes.

    Added mass [kg] and shift of the centre of mass [m] of the trunk, friction, motor strengths minus 1. Shape is
    (num_envs, 29).
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRLEnv) -> None:
        """Create the term; nothing has been drawn yet."""
        super().__init__(cfg, env)
        self._robot: Articulation = env.scene["robot"]
        self._trunk = self._robot.body_names.index("trunk")
        self._mass = self._robot.data.body_mass.torch[:, self._trunk].clone()
        self._com = self._robot.data.body_com_pos_b.torch[:, self._trunk].clone()
        self._values = torch.zeros(env.num_envs, 5 + 2 * self._robot.num_joints, device=env.device)
        self._known = False

    def __call__(self, env: ManagerBasedRLEnv) -> torch.Tensor:
        """Return the values."""
        return self._values

    def reset(self, env_ids=None) -> None:
        """Read everything once, at the first reset that comes after the draws."""
        events = self._env.event_manager
        motors = events.get_term_cfg("motor_strength").func
        if self._known or not motors.drawn:
            return
        self._known = True
        mass = self._robot.data.body_mass.torch[:, self._trunk] - self._mass
        com = self._robot.data.body_com_pos_b.torch[:, self._trunk] - self._com
        friction = events.get_term_cfg("friction").func.friction
        self._values[:] = torch.cat([mass.unsqueeze(-1), com, friction.unsqueeze(-1), motors.strength - 1.0], dim=-1)
