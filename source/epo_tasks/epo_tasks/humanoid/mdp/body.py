"""Where the parts of the humanoid are, as the Control Suite measures them."""

from __future__ import annotations

from functools import cache

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.utils.math import quat_apply

from epo_tasks.robots.facts import RobotFacts


def head_height(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the height of the head's origin above the ground [m]. Shape is (num_envs,)."""
    robot = env.scene["robot"]
    return robot.data.body_link_pos_w.torch[:, robot.body_names.index("head"), 2]


def vertical_in_torso(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the world's vertical in torso axes; its z is how upright the torso is. Shape is (num_envs, 3)."""
    return -env.scene["robot"].data.projected_gravity_b.torch


def center_of_mass_velocity(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the velocity of the centre of mass of the whole body, in world axes [m/s]. Shape is (num_envs, 3)."""
    data = env.scene["robot"].data
    mass = data.body_mass.torch.to(env.device).unsqueeze(-1)
    return (mass * data.body_com_lin_vel_w.torch).sum(dim=1) / mass.sum(dim=1)


def end_positions(env: ManagerBasedRLEnv, facts: RobotFacts) -> torch.Tensor:
    """Return the origins of hands and feet in world axes [m]. Shape is (num_envs, 4, 3).

    Args:
        env: The environment.
        facts: The humanoid; where a hinge does not pass through a body's origin, its link frame is elsewhere.
    """
    robot, ends = env.scene["robot"], facts.extras["end_links"]
    bodies = tuple(robot.body_names.index(name) for name in ends)
    places = tuple(tuple(facts.extras["frame_offsets"].get(name, (0.0, 0.0, 0.0))) for name in ends)
    columns, offsets = _uploaded(bodies, places, str(env.device))
    pose = robot.data.body_link_pose_w.torch.index_select(1, columns)
    return pose[..., :3] + quat_apply(pose[..., 3:], offsets.expand(env.num_envs, -1, -1))


@cache
def _uploaded(
    bodies: tuple[int, ...], places: tuple[tuple[float, ...], ...], device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of bodies and points on them [m] as tensors: sent to the device once, not in every step."""
    return torch.tensor(bodies, device=device), torch.tensor(places, device=device)
