"""Agents of tasks without Isaac Lab: settings as plain dicts, a task's PPO with a preset laid onto it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from epo_lab.algorithms import registry

from .presets import agent_preset

DEFAULT_AGENT = "epo"


def runner_settings(agent: str, ppo: dict[str, Any], changes: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return the settings of a runner, ready for overrides.

    Args:
        agent: Name of the preset.
        ppo: Settings of PPO on this task.
        changes: Options of populations that differ on this task, such as ``fitness``; a preset wins over them.
        settings: Everything of the runner that differs between tasks: models, roll-outs, names.
    """
    return {
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
        **settings,
        "algorithm": {**ppo, **_options(agent_preset(agent)["algorithm"], changes)},
    }


def _options(preset: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a preset's algorithm: defaults, the task's changes, and the preset on top."""
    settings = {"class_name": registry.EPO, **preset}
    options = {name: value for kind in registry.find(settings).options for name, value in asdict(kind()).items()}
    return {**options, **{name: value for name, value in changes.items() if name in options}, **settings}
