"""Named agents: each a file of settings in ``cfg/agents`` that turns a PPO config into another method's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from epo_lab.errors import UserError, did_you_mean

AGENTS_DIR = Path(__file__).parent / "agents"


def agent_names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in AGENTS_DIR.glob("*.yaml"))


@cache
def _read(name: str) -> dict[str, Any]:
    return yaml.safe_load((AGENTS_DIR / f"{name}.yaml").read_text())


def agent_preset(name: str) -> dict[str, Any]:
    """Return the settings of a preset."""
    if name not in agent_names():
        raise UserError(
            f"unknown agent '{name}'; there are: {', '.join(agent_names())}.{did_you_mean(name, agent_names())}"
        )
    return _read(name)


def agent_entry_points(ppo: str, **algorithm: Any) -> dict[str, Any]:
    """Return the registry entries of all agents of an Isaac Lab task.

    Args:
        ppo: Config class of the task's PPO agent, as ``module:Class``; it is also the default agent.
        algorithm: Settings of the algorithm that populations need on this task, such as ``fitness``.
    """

    def entry(name: str) -> Callable[[], Any]:
        def make() -> Any:
            from .isaac import with_preset

            module, _, attribute = ppo.partition(":")
            return with_preset(getattr(import_module(module), attribute), name, **algorithm)

        return make

    populations = {f"rsl_rl_{name}_cfg_entry_point": entry(name) for name in agent_names() if name != "ppo"}
    return {"rsl_rl_cfg_entry_point": ppo, "rsl_rl_ppo_cfg_entry_point": ppo, **populations}
