"""What a checkpoint must hold beyond models and optimizer, so that a resumed run goes on as if it had never stopped."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Return the states of all global random number generators."""
    state = {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),  # noqa: NPY002 - the global generator is what others draw from
        "python": random.getstate(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Restore what :func:`rng_state` returned."""
    torch.set_rng_state(state["torch"].cpu())
    np.random.set_state(state["numpy"])  # noqa: NPY002
    random.setstate(state["python"])
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


def hidden_states(algorithm: Any) -> list[Any]:
    """Return copies of the live recurrent states of actor and critic, or of those of all policies."""
    return [_copy(model.get_hidden_state()) for model in _models(algorithm)]


def set_hidden_states(algorithm: Any, states: list[Any]) -> None:
    """Restore what :func:`hidden_states` returned."""
    with torch.inference_mode():
        for model, state in zip(_models(algorithm), states, strict=True):
            if state is not None:
                model.reset(hidden_state=_copy(state))


def _models(algorithm: Any) -> list[Any]:
    return [model for policy in getattr(algorithm, "policies", [algorithm]) for model in (policy.actor, policy.critic)]


def _copy(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(part.detach().clone() for part in state)
    return None if state is None else state.detach().clone()
