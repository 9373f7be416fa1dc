"""The table of algorithms: what others must know of one before it exists. A new algorithm is a new row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT, build, without_class
from epo_lab.population.assignment import check_division

from .off_policy.cem_rl import CemRlOptions
from .off_policy.es import EsOptions, check_members
from .off_policy.esac import EsacOptions
from .off_policy.options import SacOptions, Td3Options
from .on_policy.options import EpoOptions, check_names, check_ppo, default_num_agents, split_options
from .pbt import DEFAULT_POLICIES, PbtAlgorithmOptions, check_settings

Settings = dict[str, Any]

EPO = "epo_lab.algorithms:EPO"
PBT = "epo_lab.algorithms:PBT"
ES = "epo_lab.algorithms:ES"
CEM_RL = "epo_lab.algorithms:CemRl"
ESAC = "epo_lab.algorithms:ESAC"
SAC = "epo_lab.algorithms:SAC"
TD3 = "epo_lab.algorithms:TD3"


@dataclass(frozen=True)
class Row:
    """One algorithm."""

    options: Any
    """Dataclass of its settings, beyond rsl_rl's PPO if it is one."""
    check: Callable[[Settings, int, int], None]
    """Raises a :class:`UserError` if it cannot run with a runner's settings, a number of environments and of
    processes."""
    num_agents: Callable[[Settings, int], int]
    """Number of agents that a run has, from the algorithm's settings and the number of environments."""
    played_as: Callable[[Settings], Settings]
    """Settings of the algorithm that plays its checkpoints."""
    is_ppo: bool = True
    """Whether its settings are those of rsl_rl's PPO and more; if not, they are its options alone."""
    inherits: tuple[str, ...] = ()
    """Settings that one that is no PPO takes from the task's PPO."""
    recurrent: bool = True
    """Whether it can train networks with a memory; if not, an MLP takes their place."""
    final_obs: bool = False
    """Whether it wants the last observations of episodes, from before the reset."""


def _num_agents(settings: Settings, num_envs: int) -> int:
    return settings.get("num_agents", 1) or default_num_agents(num_envs)


def _one_agent(settings: Settings, num_envs: int) -> int:
    return 1


def _check_stock(settings: Settings, num_envs: int, num_processes: int) -> None:
    algorithm = settings["algorithm"]
    check_ppo(algorithm)
    # recurrent networks learn from whole environments
    rows = num_envs * (1 if "rnn_type" in settings["actor"] else settings["num_steps_per_env"])
    number = algorithm.get("num_mini_batches", 1)
    if not 1 <= number <= rows:
        raise UserError(
            f"{ROOT}.num_mini_batches must be between 1 and {rows} for {num_envs} environments, not {number}"
        )


def _check_epo(settings: Settings, num_envs: int, num_processes: int) -> None:
    _check_stock(settings, num_envs, num_processes)
    options, others = split_options(settings["algorithm"])
    check_names(others)
    number = options.num_agents or default_num_agents(num_envs)
    options.evolution.check(number)
    check_division(num_envs, number, allow_uneven=options.allow_uneven, master_share=options.master_share)


def _check_pbt(settings: Settings, num_envs: int, num_processes: int) -> None:
    check_settings(settings["algorithm"], num_processes)
    own = {name: value for name, value in settings["algorithm"].items() if name != "pbt"}
    # every process has its share of the policies
    own["num_agents"] = (own.get("num_agents") or DEFAULT_POLICIES) // num_processes
    _check_epo({**settings, "algorithm": own}, num_envs, num_processes)


def _options(settings: Settings) -> Any:
    """Return the options of an algorithm that is no PPO, checked, from a runner's settings."""
    return build(find(settings["algorithm"]).options, without_class(settings["algorithm"]))


def _check_replay(settings: Settings, num_envs: int, num_processes: int) -> None:
    _options(settings).check(num_envs, settings["num_steps_per_env"])


def _check_es(settings: Settings, num_envs: int, num_processes: int) -> None:
    options = _options(settings)
    check_members(num_envs, options.num_agents, num_processes)
    options.es.check(options.num_agents)


def _check_members(settings: Settings, num_envs: int, num_processes: int) -> Any:
    _check_replay(settings, num_envs, num_processes)
    options = _options(settings)
    check_members(num_envs, options.num_agents, num_processes)
    return options


def _check_cem_rl(settings: Settings, num_envs: int, num_processes: int) -> None:
    options = _check_members(settings, num_envs, num_processes)
    options.cem.count_parents(options.num_agents)


def _check_esac(settings: Settings, num_envs: int, num_processes: int) -> None:
    options = _check_members(settings, num_envs, num_processes)
    options.es.check(options.num_agents - 1)


def _best_policy(settings: Settings) -> Settings:
    """Return settings of a single policy: PBT's checkpoints have the best one at their top."""
    own = {name: value for name, value in settings.items() if name != "pbt"}
    return own | {"class_name": EPO, "num_agents": 1}


def _master_alone(settings: Settings) -> Settings:
    """Return settings without a population: the master is at the top of a checkpoint."""
    return settings | {"num_agents": 1}


_LEARNS_FROM_REPLAY: dict[str, Any] = {"is_ppo": False, "inherits": ("gamma",), "recurrent": False, "final_obs": True}

ALGORITHMS = {
    EPO: Row(EpoOptions, _check_epo, _num_agents, dict),
    PBT: Row(PbtAlgorithmOptions, _check_pbt, _num_agents, _best_policy),
    ES: Row(EsOptions, _check_es, _num_agents, _master_alone, is_ppo=False),
    CEM_RL: Row(CemRlOptions, _check_cem_rl, _num_agents, _master_alone, **_LEARNS_FROM_REPLAY),
    ESAC: Row(EsacOptions, _check_esac, _num_agents, _master_alone, **_LEARNS_FROM_REPLAY),
    SAC: Row(SacOptions, _check_replay, _one_agent, dict, **_LEARNS_FROM_REPLAY),
    TD3: Row(Td3Options, _check_replay, _one_agent, dict, **_LEARNS_FROM_REPLAY),
}

STOCK = Row(None, _check_stock, _one_agent, dict)
"""rsl_rl's own algorithms, whose names are not ours to list."""


def find(settings: Settings) -> Row:
    """Return the row of the algorithm that these settings name."""
    name = str(settings.get("class_name", ""))
    if name.startswith("epo_lab.") and name not in ALGORITHMS:
        raise UserError(f"{ROOT}.class_name '{name}' is none of {', '.join(ALGORITHMS)}")
    return ALGORITHMS.get(name, STOCK)
