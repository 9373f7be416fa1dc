"""The table of algorithms: what others must know of one before it exists. A new algorithm is a new row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.population.assignment import check_division
from epo_lab.population.pbt import PbtOptions

from .on_policy.options import OPTION_NAMES, EpoOptions, default_num_agents, split_options
from .pbt import check_settings

Settings = dict[str, Any]

EPO = "epo_lab.algorithms:EPO"
PBT = "epo_lab.algorithms:PBT"


@dataclass(frozen=True)
class Row:
    """One algorithm."""

    options: tuple[type, ...]
    """Dataclasses of its settings beyond rsl_rl's PPO."""
    check: Callable[[Settings, int, int], None]
    """Raises a :class:`UserError` if it cannot run with settings, a number of environments and of processes."""
    num_agents: Callable[[Settings, int], int]
    """Number of agents that a run has, from settings and the number of environments."""
    played_as: Callable[[Settings], Settings]
    """Settings of the algorithm that plays its checkpoints."""


def _num_agents(settings: Settings, num_envs: int) -> int:
    return settings.get("num_agents", 1) or default_num_agents(num_envs)


def _check_epo(settings: Settings, num_envs: int, num_processes: int) -> None:
    if not any(name in settings for name in OPTION_NAMES):
        return
    options, _ = split_options(settings)
    number = _num_agents(settings, num_envs)
    options.genetics(1).check(number)
    check_division(num_envs, number, allow_uneven=options.allow_uneven)


def _check_pbt(settings: Settings, num_envs: int, num_processes: int) -> None:
    check_settings(settings, several_processes=num_processes > 1)
    _check_epo(settings, num_envs, num_processes)


def _best_policy(settings: Settings) -> Settings:
    """Return settings of a single policy: PBT's checkpoints have the best one at their top."""
    own = {name: value for name, value in settings.items() if not name.startswith("pbt_")}
    return own | {"class_name": EPO, "num_agents": 1}


ALGORITHMS = {
    EPO: Row((EpoOptions,), _check_epo, _num_agents, dict),
    PBT: Row((EpoOptions, PbtOptions), _check_pbt, _num_agents, _best_policy),
}

STOCK = Row((), _check_epo, _num_agents, dict)
"""rsl_rl's own algorithms, whose names are not ours to list."""


def find(settings: Settings) -> Row:
    """Return the row of the algorithm that these settings name."""
    name = settings.get("class_name", "")
    if name.startswith("epo_lab.") and name not in ALGORITHMS:
        raise UserError(f"agent.algorithm.class_name '{name}' is none of {', '.join(ALGORITHMS)}")
    return ALGORITHMS.get(name, STOCK)
