"""Promotion and demotion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .goals import goals_of

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv


def terrain_levels(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, mode: str) -> dict[str, torch.Tensor]:
    """Move robots whose episode ended to another level, and return the mean level of all and of each track type.

    A robot that got farther from its start than 80 % of what its speed command is worth in a whole episode goes up, one
    below 40 % down. Mode ``goals`` also promotes those that reached all goals: the shorter tracks end before the 80 %.
    """
    goals = goals_of(env)
    terrain = goals.terrain
    position = goals.robot.data.root_link_pos_w.torch[env_ids, :2]
    distance = (position - terrain.env_origins[env_ids, :2]).norm(dim=-1)
    expected = goals.speed[env_ids] * env.max_episode_length_s
    # an environment that was reset without a step has no episode to judge
    ended = env.episode_length_buf[env_ids] > 0
    up = distance > 0.8 * expected
    if mode == "goals":
        up |= goals.finished[env_ids]
    down = (distance < 0.4 * expected) & ~up
    terrain.update_env_origins(env_ids, up & ended, down & ended)
    levels = terrain.terrain_levels.float()
    state = {"level": levels.mean()}
    num_kinds = len(dict.fromkeys(terrain.column_types))
    kind = terrain.terrain_types * num_kinds // len(terrain.column_types)
    for index, name in enumerate(dict.fromkeys(terrain.column_types)):
        mine = (kind == index).float()
        state[name] = (levels * mine).sum() / mine.sum().clamp(min=1.0)
    return state
