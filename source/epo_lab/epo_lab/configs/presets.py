"""Named agents: each a file of settings in ``configs/agents`` that turns a PPO config into another method's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from epo_lab.base.errors import UserError, did_you_mean
from epo_lab.population.pbt import PbtOptions

PBT_MUTATED = PbtOptions().mutated
"""Settings that PBT mutates by default."""
AGENTS_DIR = Path(__file__).parent / "agents"


ITERATIONS = ("max_iterations", "save_interval")
"""Settings of a runner that count iterations."""


def same_length(steps: int, new_steps: int) -> Callable[[int], int]:
    """Return what makes a number of iterations another one with as many steps of the environment.

    Args:
        steps: Control steps of a roll-out.
        new_steps: Those of the new iterations.
    """
    return lambda iterations: max(1, round(iterations * steps / new_steps))


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


def agent_entry_points(
    ppo: str,
    *,
    default: str = "ppo",
    models: dict[str, str] | None = None,
    experiment_name: str | None = None,
    algorithm: dict[str, Any] | None = None,
    by_agent: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the registry entries of all agents of an Isaac Lab task.

    Args:
        ppo: Config class of the task's PPO agent, as ``module:Class``.
        default: Name of the agent that is taken if none is named.
        models: More config classes, by name: ``{"mlp": ...}`` adds ``epo_mlp``, ``ppo_mlp`` and so on.
        experiment_name: Folder of the task's runs. Defaults to None: that of the PPO agent.
        algorithm: Settings of the algorithm that populations have on this task, such as
            ``{"fitness": {"source": "extras:successes"}}``.
        by_agent: Settings of the algorithm that single presets have on this task.
    """
    changes = {"experiment_name": experiment_name, "algorithm": algorithm, "by_agent": by_agent}
    entries = {}
    for suffix, base in {"": ppo, **{f"_{name}": base for name, base in (models or {}).items()}}.items():
        for name in agent_names():
            # stock PPO without any change stays a class path, as in Isaac Lab's own tasks
            plain = name == "ppo" and experiment_name is None
            entries[f"rsl_rl_{name}{suffix}_cfg_entry_point"] = base if plain else _factory(base, name, changes)
    first = entries[f"rsl_rl_{default}_cfg_entry_point"]
    return {"rsl_rl_cfg_entry_point": first, "default_preset": default, **entries}


def _factory(base: str, name: str, changes: dict[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        from .isaac import with_preset

        module, _, attribute = base.partition(":")
        return with_preset(getattr(import_module(module), attribute), name, **changes)

    return make
