"""Open an Isaac Lab task as an rsl_rl environment."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym

from epo_lab.cfg.overrides import check_paths, split_overrides
from epo_lab.errors import UserError

VIEWERS = {
    "viser": ("viser", "add it with './isaaclab.sh -i viewer'"),
    "rerun": ("rerun", "add it with 'uv pip install rerun-sdk'"),
}
"""Python module of a viewer and how to get it."""


def split_launcher_arguments(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return what Isaac Lab's launcher understands (``--viz``, ``--livestream``, ...) and the rest."""
    from isaaclab.app import add_launcher_args

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    add_launcher_args(parser)
    try:
        return parser.parse_known_args(arguments)
    except (argparse.ArgumentError, argparse.ArgumentTypeError) as error:
        raise UserError(str(error)) from None


def resolve_configs(
    task: str, agent_key: str, base: list[str], overrides: list[str], *, play_mode: bool = False
) -> tuple[Any, Any]:
    """Return the env and agent configs of a task with presets and overrides applied.

    Args:
        task: Id of the task.
        agent_key: Registry key of the agent.
        base: Overrides that come first: those of the profile.
        overrides: Overrides of the user, which win.
        play_mode: Whether to apply the task's changes for playing.
    """
    from isaaclab_tasks.utils import resolve_task_config

    presets, paths = split_overrides(overrides)
    paths = [*base, *paths]
    try:
        check_paths(paths, *resolve_task_config(task, agent_key, overrides=presets))
        return resolve_task_config(task, agent_key, play_mode=play_mode, overrides=[*presets, *paths])
    except ValueError as error:
        raise UserError(_preset_error(task, presets, error)) from None


def check_device(device: str) -> None:
    """Raise a :class:`UserError` if torch cannot use the device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {device} cannot be used ({reason}): try --device cpu") from None


def engine_for_viewer(viz: str | None, overrides: list[str]) -> list[str]:
    """Return the overrides with Isaac Sim's PhysX added if its viewer is asked for and no engine is named.

    Our default, PhysX without Kit, cannot share a process with Kit.
    """
    chosen = any(token.startswith("physics=") for token in overrides)
    if viz is None or "kit" not in viz.split(",") or chosen:
        return overrides
    return [*overrides, "physics=isaacsim_physx"]


def check_launch(env_cfg: Any, launcher: argparse.Namespace) -> None:
    """Raise a :class:`UserError` if engine and viewer do not go together or something they need is not installed."""
    from isaaclab.app import validate_launch

    try:
        _, kit_sources = validate_launch(env_cfg, launcher)
    except ValueError as error:
        raise UserError(str(error).splitlines()[0]) from None
    if kit_sources and importlib.util.find_spec("isaacsim") is None:
        raise UserError(
            f"Isaac Sim is not installed, but needed for {kit_sources[0]}: './isaaclab.sh -i isaacsim' adds it on a"
            " machine with an RTX GPU; without it use physics=ovphysx or newton_mjwarp, and --viz viser"
        )
    for name in launcher.visualizer or []:
        module, extra = VIEWERS.get(name, ("", ""))
        if module and importlib.util.find_spec(module) is None:
            raise UserError(f"--viz {name} needs {module}: {extra}")


@contextmanager
def open_env(task: str, env_cfg: Any, launcher: argparse.Namespace) -> Iterator[Any]:
    """Start what the task needs (nothing, or Isaac Sim) and create its environment."""
    from isaaclab.app import launch_simulation
    from isaaclab_rl.entrypoints.common import close_env

    with launch_simulation(env_cfg, launcher):
        env = gym.make(task, cfg=env_cfg)
        try:
            yield env
        finally:
            close_env(env)


def wrap_env(env: Any, agent_cfg: Any) -> Any:
    """Return the environment as rsl_rl wants it, already reset."""
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    return RslRlVecEnvWrapper(env, clip_actions=agent_cfg.clip_actions)


def runner_settings(agent_cfg: Any) -> dict[str, Any]:
    """Return an agent config as the dict that rsl_rl's runner takes."""
    from isaaclab.utils import to_dict
    from isaaclab_rl.rsl_rl import check_rsl_rl_version, handle_deprecated_rsl_rl_cfg

    settings = to_dict(handle_deprecated_rsl_rl_cfg(agent_cfg, check_rsl_rl_version()))
    if settings["logger"] == "wandb":
        settings["logger"] = {"class_name": "WandbLogWriter", "project_name": settings["wandb_project"]}
    elif settings["logger"] == "neptune":
        settings["logger"] = {"class_name": "NeptuneLogWriter", "project_name": settings["neptune_project"]}
    return settings


def dump_configs(folder: Path, env_cfg: Any, agent_cfg: Any) -> None:
    """Write the resolved configs into the run folder."""
    from isaaclab.utils.io import dump_yaml

    dump_yaml(str(folder / "params" / "env.yaml"), env_cfg)
    dump_yaml(str(folder / "params" / "agent.yaml"), agent_cfg)


def _preset_error(task: str, presets: list[str], error: ValueError) -> str:
    from isaaclab_tasks.utils.preset_cli import enumerate_task_presets

    available = enumerate_task_presets(task) or {}
    known = "; ".join(f"{kind.value}: {', '.join(names)}" for kind, names in available.items() if names)
    if presets:
        return f"{' '.join(presets)} does not fit {task}; its presets are {known}"
    return str(error)
