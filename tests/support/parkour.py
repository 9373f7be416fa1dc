"""Make, place and drive robots on a small parkour field."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from .envs import make_env

TASK = "Epo-A1-Parkour-v0"
COLUMNS = 5


def make_parkour(engine: str, *overrides: str, num_envs: int = 10) -> AbstractContextManager[Any]:
    """Create the task on a field with one column of each type, on a coarse grid."""
    terrain = "env.scene.terrain.terrain_generator"
    small = (f"{terrain}.num_cols={COLUMNS}", f"{terrain}.horizontal_scale=0.1")
    return make_env(TASK, f"physics={engine}", *small, *overrides, num_envs=num_envs)


def goals_of(env) -> Any:
    """Return the command term."""
    return env.command_manager.get_term("goals")


def place(env, ids: list[int], position: torch.Tensor, yaw: float = 0.0) -> None:
    """Put the bases of some robots at places in the world, at rest."""
    robot = env.scene["robot"]
    pose = torch.zeros(len(ids), 7)
    pose[:, :3] = position
    pose[:, 5], pose[:, 6] = torch.sin(torch.tensor(yaw / 2)), torch.cos(torch.tensor(yaw / 2))
    rows = torch.tensor(ids, dtype=torch.int32)
    robot.write_root_pose_to_sim_index(root_pose=pose, env_ids=rows)
    robot.write_root_velocity_to_sim_index(root_velocity=torch.zeros(len(ids), 6), env_ids=rows)


def stand(env, steps: int = 1):
    """Take steps with a zero action and return what the last one gave."""
    for _ in range(steps):
        result = env.step(torch.zeros(env.num_envs, 12))
    return result
