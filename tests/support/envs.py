"""Make a task's environment in a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import isaaclab_tasks  # noqa: F401
from isaaclab_tasks.utils import resolve_task_config

import epo_tasks  # noqa: F401


@contextmanager
def make_env(task: str, *overrides: str, num_envs: int, seed: int = 0) -> Iterator[Any]:
    """Create the environment on CPU, reset it, and close it afterwards."""
    cfg, _ = resolve_task_config(task, None, overrides=list(overrides))
    cfg.scene.num_envs, cfg.seed, cfg.sim.device = num_envs, seed, "cpu"
    env = gym.make(task, cfg=cfg).unwrapped
    try:
        env.reset()
        yield env
    finally:
        env.close()
