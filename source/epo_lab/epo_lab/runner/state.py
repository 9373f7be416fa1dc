"""What a checkpoint must hold beyond models and optimizer, so that a resumed run goes on as if it had never stopped."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Return the states of all global random number generators."""
    # lists and numbers only: a checkpoint must load without running code from it
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the global generator is what others draw from
    state = {"torch": torch.get_rng_state(), "numpy": [name, keys.tolist(), *rest], "python": random.getstate()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Restore what :func:`rng_state` returned."""
    torch.set_rng_state(state["torch"].cpu())
    np.random.set_state(tuple(state["numpy"]))  # noqa: NPY002
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([part.cpu() for part in state["cuda"]])


def env_state(env: Any) -> dict[str, Any] | None:
    """Return the state of an environment that can be restored, else None."""
    env = getattr(env, "unwrapped", env)
    return env.state_dict() if hasattr(env, "state_dict") else None


def set_env_state(env: Any, state: dict[str, Any] | None, *, of_another: bool = False) -> bool:
    """Restore what :func:`env_state` returned; return whether the environments go on exactly where they were.

    Args:
        env: The environment.
        state: The state.
        of_another: Whether it may be the state of another process's environments. It is then restored only if the
            environment says with ``state_is_shared`` that it holds for all of them.
    """
    env = getattr(env, "unwrapped", env)
    if state is None or not hasattr(env, "load_state_dict"):
        return False
    if of_another and not getattr(env, "state_is_shared", False):
        return False
    return bool(env.load_state_dict(state))
