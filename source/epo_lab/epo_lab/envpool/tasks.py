"""Tasks of EnvPool by name: found, checked, and refused in a line if none of our agents can act in them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from epo_lab.base.errors import UserError, did_you_mean

PREFIX = "EnvPool/"
"""What distinguishes these tasks from others of the same name."""

METRIC = "Metrics/episode_return"

SETUP_OPTIONS = (
    "num_envs",
    "batch_size",
    "num_threads",
    "max_num_players",
    "thread_affinity_offset",
    "base_path",
    "seed",
    "env_seed",
    "gym_reset_return_info",
    "reward_threshold",
)
"""Options that are the same for all of EnvPool's tasks and say nothing about one."""


@dataclass(frozen=True)
class Task:
    """What EnvPool says of a task."""

    name: str
    observations: gym.Space
    actions: gym.spaces.Box
    max_episode_length: int
    """Time limit [steps]."""
    options: dict[str, Any]
    """Its options, such as the weights of its reward; those that are the same for all tasks are left out."""


def is_envpool(task: str) -> bool:
    """Return whether a task is meant to be one of EnvPool's."""
    return task.lower().startswith(PREFIX.lower())


def find_envpool_task(task: str) -> EnvSpec:
    """Return a task of EnvPool, which must exist, as Gymnasium describes tasks."""
    name = task[len(PREFIX) :]
    names = load_envpool().list_all_envs()
    if name not in names:
        hint = did_you_mean(name, names) or " docs/envpool.md names the usual ones."
        raise UserError(f"EnvPool has no task '{name}'.{hint}")
    spec = EnvSpec("EnvPool", "epo_lab.envpool.env:EnvPoolEnv", kwargs={"envpool": name, "metric": METRIC})
    # Note: Gymnasium's own check of names allows one slash, and some of EnvPool's have one already
    spec.id = PREFIX + name
    return spec


def load_envpool() -> Any:
    """Import EnvPool, which takes seconds and need not be installed."""
    try:
        import envpool
    except ModuleNotFoundError as error:
        if error.name != "envpool":
            raise
        raise UserError("EnvPool is not installed: './isaaclab.sh -i envpool' adds it (400 MB)") from None
    return envpool


def read_task(name: str, options: dict[str, Any] | None = None) -> Task:
    """Return a task with options of its own; one that cannot be trained on is refused."""
    try:
        # Gymnasium warns of bounds that lose digits as float32
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            spec = load_envpool().make_spec(name, **(options or {}))
            observations, actions = spec.gymnasium_observation_space, spec.gymnasium_action_space
    except (ValueError, RuntimeError, TypeError) as error:
        raise UserError(f"EnvPool cannot make {name}: {str(error).splitlines()[0]}") from None
    config = spec.config._asdict()
    reason = refusal(observations, actions, config["max_num_players"])
    if reason:
        raise UserError(f"{PREFIX}{name} {reason}: our agents see one vector and give one vector of continuous actions")
    plain = {key: value for key, value in config.items() if isinstance(value, bool | int | float | str)}
    own = {key: value for key, value in plain.items() if key not in SETUP_OPTIONS}
    return Task(name, observations, actions, config["max_episode_steps"], own)


def refusal(observations: gym.Space, actions: gym.Space, num_players: int) -> str:
    """Return why a task cannot be trained on; empty if it can."""
    if num_players > 1:
        return f"is for up to {num_players} players"
    if not isinstance(actions, gym.spaces.Box) or not np.issubdtype(actions.dtype, np.floating):
        return "has discrete actions"
    if len(actions.shape) != 1:
        return f"has actions of shape {actions.shape}"
    for path, space in leaves(observations):
        if space.dtype == np.uint8 or len(space.shape) > 2:
            where = f" ({'.'.join(path)})" if path else ""
            return f"observes images{where}"
    return ""


def leaves(space: gym.Space, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the arrays of an observation space with the keys that lead to them, sorted by key."""
    if not isinstance(space, gym.spaces.Dict):
        yield path, space
        return
    for key in sorted(space):
        yield from leaves(space[key], (*path, key))
