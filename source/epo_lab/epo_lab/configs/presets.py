"""Named agents: each a file of settings in ``configs/agents`` that turns a PPO config into another method's."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from importlib import import_module
from typing import Any

import yaml

from epo_lab.base.errors import UserError, did_you_mean
from epo_lab.population.pbt import PbtOptions

from .names import AGENTS_DIR, agent_names

PBT_MUTATED = PbtOptions().mutated
"""Settings that PBT mutates by default."""
PPO_ENTRY = "rsl_rl_cfg_entry_point"
"""Registry key of a task's default rsl_rl agent."""


ITERATIONS = ("max_iterations", "save_interval")
"""Settings of a runner that count iterations."""


def same_length(steps: int, new_steps: int) -> Callable[[int], int]:
    """Return what makes a number of iterations another one with as many steps of the environment.

    Args:
        steps: Control steps of a roll-out.
        new_steps: Those of the new iterations.
    """
    return lambda iterations: max(1, round(iterations * steps / new_steps))


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
    return {PPO_ENTRY: first, "default_preset": default, **entries}


def agent_of(ppo: Any, name: str) -> Callable[[], Any]:
    """Return the registry entry of an agent that is made from any task's PPO config, with its pace fitted to the run.

    It stands in a registration of Isaac Lab where the PPO config stood, so that Isaac Lab's own commands train it:
    ``"rsl_rl_cfg_entry_point": agent_of("my_project.agents:MyPpoCfg", "epo")``.

    Args:
        ppo: The task's PPO config as a registration has it: ``module:Class``, a class, a function or a config.
        name: Name of the preset.
    """
    agent_preset(name)

    def make() -> Any:
        from .isaac import for_any_task

        return for_any_task(_maker(ppo), name)

    return make


def add_agents(entries: dict[str, Any]) -> None:
    """Give the registration of a task that has an rsl_rl PPO config all agents; what it has already stays."""
    ppo = entries.get(PPO_ENTRY)
    if ppo is None or "default_preset" in entries:
        return
    for name in agent_names():
        entries.setdefault(f"rsl_rl_{name}_cfg_entry_point", ppo if name == "ppo" else agent_of(ppo, name))
    entries["default_preset"] = "ppo"


def _factory(base: str, name: str, changes: dict[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        from .isaac import with_preset

        return with_preset(_maker(base), name, **changes)

    return make


def _maker(entry: Any) -> Callable[[], Any]:
    """Return what makes a new config of a registry entry."""
    if isinstance(entry, str):
        module, _, attribute = entry.partition(":")
        entry = getattr(import_module(module), attribute)
    return entry if callable(entry) else partial(deepcopy, entry)
