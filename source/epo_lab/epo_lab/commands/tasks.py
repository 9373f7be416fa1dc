"""Look up tasks and their agents in Gymnasium's registry."""

from __future__ import annotations

import re
from importlib import import_module

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from epo_lab.base.checkout import typed
from epo_lab.base.errors import UserError, did_you_mean
from epo_lab.configs.presets import PPO_ENTRY, add_agents

from .backends.base import BACKENDS

_AGENT_KEY = re.compile(r"rsl_rl_(\w+)_cfg_entry_point")


def find_task(task: str | None) -> EnvSpec:
    """Return the registered task; Isaac Lab is loaded only if it is none of the diagnostics and none of EnvPool's."""
    if not task:
        raise UserError(
            f"--task is missing: name one, for example --task Epo-Anymal-Flat-v0; '{typed('list')}' lists them"
        )
    import epo_lab.diagnostics  # noqa: F401
    from epo_lab.envpool.tasks import find_envpool_task, is_envpool

    if is_envpool(task):
        return find_envpool_task(task)
    module, _, task = task.rpartition(":")
    if module:
        _load_module(module)
    if task in gym.registry and _is_ours(gym.registry[task]):
        return gym.registry[task]
    load_tasks()
    if task not in gym.registry:
        names = [name for name, spec in gym.registry.items() if _is_ours(spec)]
        hint = did_you_mean(task, names) or f" '{typed('list')} --all' lists them."
        raise UserError(f"unknown task '{task}'.{hint}")
    spec = gym.registry[task]
    if not _is_ours(spec):
        raise UserError(
            f"'{task}' is a Gymnasium environment, but no Isaac Lab task: '{typed('list')} --all' lists those"
        )
    return spec


def _is_ours(spec: EnvSpec) -> bool:
    """Return whether a registered environment is an Isaac Lab task or a diagnostic."""
    return any(key in spec.kwargs for key in BACKENDS)


def _load_module(name: str) -> None:
    """Import the module that registers a task, as in Gymnasium's ``module:task``."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(f"cannot import '{error.name}' for task '{name}:...': set PYTHONPATH to its folder") from None


def load_tasks() -> None:
    """Import the packages that register tasks."""
    import isaaclab_tasks  # noqa: F401
    from isaaclab.cli import load_external_tasks

    load_external_tasks()


def agent_entry_point(spec: EnvSpec, agent: str | None) -> str:
    """Return the registry key of an agent that is named shortly (``ppo``) or by its key; None is the task's default.

    A task that has only an rsl_rl PPO config, such as Isaac Lab's own, gets all agents here, made from that.
    """
    add_agents(spec.kwargs)
    if agent is None:
        agent = spec.kwargs.get("default_preset", PPO_ENTRY)
    key = agent if agent.endswith("_entry_point") else f"rsl_rl_{agent}_cfg_entry_point"
    if key not in spec.kwargs:
        names = [match[1] for name in spec.kwargs if (match := _AGENT_KEY.fullmatch(name))]
        if not names and PPO_ENTRY not in spec.kwargs:
            raise UserError(f"{spec.id} has no rsl_rl agent: populations are made from a task's rsl_rl PPO config")
        raise UserError(
            f"{spec.id} has no agent '{agent}'; it has: {', '.join(sorted(names))}.{did_you_mean(agent, names)}"
        )
    return key


def metric_tag(spec: EnvSpec) -> str:
    """Return the log tag of the task's metric."""
    return spec.kwargs.get("metric", "Metrics/success_rate")


def score_name(spec: EnvSpec) -> str:
    """Return where the score of a single episode is: ``return``, or the key of the environments' extras that holds it.

    A task whose metric is ``Metrics/successes`` keeps the successes of every environment's last episode in
    ``extras["successes"]``.
    """
    name = metric_tag(spec).rpartition("/")[2]
    return "return" if name == "episode_return" else name
