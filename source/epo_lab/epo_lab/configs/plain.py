"""Agents of tasks without Isaac Lab: settings as plain dicts, a task's PPO with a preset laid onto it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from epo_lab.algorithms import registry
from epo_lab.base.options import merge

from .presets import agent_preset

DEFAULT_AGENT = "epo"


def runner_settings(agent: str, ppo: dict[str, Any], changes: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return the settings of a runner, ready for overrides.

    Args:
        agent: Name of the preset.
        ppo: Settings of PPO on this task, for presets that are one.
        changes: Options of algorithms that differ on this task, such as ``fitness``; a preset wins over them.
        settings: What else is the task's own: models, roll-outs, names.
    """
    preset = agent_preset(agent)
    common = {
        "seed": 0,
        "device": "cpu",
        "run_name": "",
        "logger": "tensorboard",
        "wandb_project": "epo-lab",
        "neptune_project": "epo-lab",
        "save_interval": 50,
        "keep_checkpoints": 0,
        "guard_limit": 20,
        "check_for_nan": False,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    }
    algorithm = _algorithm_settings({"class_name": registry.EPO, **preset["algorithm"]}, ppo, changes)
    return {**merge(common, settings, preset), "algorithm": algorithm}


def _algorithm_settings(preset: dict[str, Any], ppo: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return all settings of an algorithm: PPO's, the defaults of its options, the task's changes, the preset's."""
    row = registry.find(preset)
    options = {} if row.options is None else asdict(row.options())
    own = {name: value for name, value in changes.items() if name in options}
    return merge(ppo if row.is_ppo else {}, options, own, preset)
