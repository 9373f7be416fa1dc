"""The Control Suite itself, to check our tasks against."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

os.environ.setdefault("MUJOCO_GL", "disable")


def load(task: str) -> Any:
    """Return the suite's humanoid environment."""
    from dm_control import suite

    return suite.load("humanoid", task, task_kwargs={"random": 0})


def set_state(physics: Any, position: np.ndarray, quat: np.ndarray, joints: np.ndarray) -> None:
    """Put the humanoid somewhere; ``quat`` is (x, y, z, w)."""
    physics.data.qpos[:3] = position
    physics.data.qpos[3:7] = quat[[3, 0, 1, 2]]
    physics.data.qpos[7:] = joints
    physics.data.qvel[:] = 0.0


def look(env: Any) -> np.ndarray:
    """Return the suite's observation as one vector."""
    return np.concatenate([np.ravel(value) for value in env.task.get_observation(env.physics).values()])
