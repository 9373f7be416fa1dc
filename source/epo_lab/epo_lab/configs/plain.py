"""Agents of tasks without Isaac Lab: settings as plain dicts, a task's PPO with a preset laid onto it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from epo_lab.algorithms import registry
from epo_lab.base.options import merge

from .presets import agent_preset
from .sizes import at_size

DEFAULT_AGENT = "epo"


def sections(
    agent: str,
    *,
    num_envs: int,
    ppo: dict[str, Any],
    changes: dict[str, Any],
    replay: dict[str, Any],
    size: str,
    **settings: Any,
) -> dict[str, Any]:
    """Return ``env`` and ``agent`` settings of a task with a preset, ready for overrides.

    Args:
        agent: Name of the preset.
        num_envs: Number of environments; a population gets the nearest number above that its members can share.
        ppo: Settings of PPO on this task, for presets that are one.
        changes: Options of algorithms that differ on this task, such as ``fitness``.
        replay: What differs for agents that learn from a replay: ``env`` and ``agent`` settings.
        size: Size of the preset's values.
        settings: What else is the task's own: models, roll-outs, names.
    """
    preset = at_size(agent_preset(agent), size)
    algorithm = {"class_name": registry.EPO, **preset["algorithm"]}
    row = registry.find(algorithm)
    # defaults of the options, then the preset, then what this task changes
    options = {} if row.options is None else asdict(row.options())
    own = {name: value for name, value in changes.items() if name in options}
    algorithm = merge(ppo if row.is_ppo else {}, options, algorithm, own)
    made = {"env": {"num_envs": num_envs}, "agent": {**merge(_COMMON, settings, preset), "algorithm": algorithm}}
    if row.final_obs:
        made = merge(made, replay)
    members = row.num_agents(made["agent"]["algorithm"], made["env"]["num_envs"])
    made["env"]["num_envs"] = -(-made["env"]["num_envs"] // members) * members
    return made


_COMMON = {
    "seed": 0,
    "device": "cpu",
    "run_name": "",
    "logger": "tensorboard",
    "wandb_project": "epo-lab",
    "neptune_project": "epo-lab",
    "save_interval": 50,
    "keep_checkpoints": 0,
    "guard_limit": 20,
    "guard_bound": 1e6,
    "check_for_nan": False,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
}
