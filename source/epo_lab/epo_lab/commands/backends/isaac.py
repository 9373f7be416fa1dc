"""Tasks of Isaac Lab, as rsl_rl environments."""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import yaml

from epo_lab.algorithms import registry
from epo_lab.base.device import usable
from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_text
from epo_lab.base.processes import own_device, rank
from epo_lab.commands import viewer
from epo_lab.commands.tasks import agent_entry_point, find_task
from epo_lab.configs.experiments import experiment_overrides
from epo_lab.configs.overrides import check_paths, split_overrides
from epo_lab.configs.presets import PPO_ENTRY
from epo_lab.configs.sizes import DEFAULT, FOREIGN_ENVS, changed_beyond_size, check_size, default_size
from epo_lab.runner.options import check_runner

from .base import RUN_OPTIONS, Backend, add_wandb_options, logger_settings

VIEWERS = {
    "viser": ("viser", "add it with './isaaclab.sh -i viewer'"),
    "rerun": ("rerun", "add it with 'uv pip install rerun-sdk'"),
}
"""Python module of a viewer and how to get it."""


class IsaacBackend(Backend):
    """A registered Isaac Lab task; the simulation starts with :meth:`open`."""

    env_cfg: Any
    agent_cfg: Any
    _web: tuple[str, int] | None = None
    """Address of the web viewer, if there is one."""

    def resolve(self, args: argparse.Namespace, rest: list[str], config_dir: Path, *, play_mode: bool = False) -> None:
        """Resolve presets, size and overrides; options of the command line win over all of them."""
        self._agent_key = agent_entry_point(self.spec, args.agent)
        self._launcher, overrides = split_launcher_arguments(rest)
        overrides = engine_for_viewer(args.viz, overrides)
        base = experiment_overrides(config_dir, getattr(args, "experiment", None))
        size = check_size(args.profile or default_size())
        env_cfg, agent_cfg, self.size_note = resolve_configs(
            self.spec.id, self._agent_key, base, overrides, size=size, play_mode=play_mode
        )
        self.env_cfg, self.agent_cfg = env_cfg, agent_cfg
        if registry.find({"class_name": agent_cfg.algorithm.class_name}).final_obs and not play_mode:
            env_cfg.compute_final_obs = True
        if args.num_envs is not None:
            env_cfg.scene.num_envs = args.num_envs
        for name in RUN_OPTIONS:
            if getattr(args, name, None) is not None:
                setattr(agent_cfg, name, getattr(args, name))
        if getattr(args, "log_project_name", None) is not None:
            agent_cfg.wandb_project = agent_cfg.neptune_project = args.log_project_name
        # Isaac Lab's own tasks name a GPU, which only counts as a choice if the user made it
        typed = any(token.startswith("env.sim.device=") for token in overrides)
        env_cfg.sim.device = own_device(args.device or (env_cfg.sim.device if typed else usable(env_cfg.sim.device)))
        agent_cfg.device = own_device(args.device or usable(agent_cfg.device))
        agent_cfg.seed += rank()
        # some randomization happens while the environment is made, so it needs the seed too
        env_cfg.seed = agent_cfg.seed
        self.settings = runner_settings(agent_cfg)
        check_runner(self.settings)
        add_wandb_options(self.settings, args)
        self.num_envs, self.device = env_cfg.scene.num_envs, env_cfg.sim.device
        chosen = args.num_envs is not None or any(token.startswith("env.scene.num_envs=") for token in [*base, *rest])
        if not (chosen or play_mode):
            # the nearest number above that of the size which the members of a population can share
            self.resize(-(-self.num_envs // self.num_agents) * self.num_agents)
        self.engine = type(env_cfg.sim.physics).__name__.removesuffix("Cfg")
        self.check_size()
        self._launcher.device, self._launcher.visualizer = self.device, args.viz
        check_launch(env_cfg, self._launcher)
        if viewer.wants(args.viz, "viser"):
            self._web = getattr(args, "host", viewer.HOST), getattr(args, "port", viewer.PORT)
            viewer.check_port(*self._web)

    @property
    def starting(self) -> str:
        """What goes on, with Warp's first compilation, which takes longer than everything else."""
        usual = "usually 10 to 30 s" if _kernels_cached() else "Warp compiles its kernels, once: usually 1 to 3 minutes"
        return f"Starting the simulation on {self.engine} ({usual})"

    @property
    def agent_key(self) -> str:
        """Registry key of the agent."""
        return self._agent_key

    @property
    def note(self) -> str:
        """What the task's config says of itself; Isaac Lab's own tasks say nothing."""
        return self.env_cfg.note() if hasattr(self.env_cfg, "note") else ""

    def resize(self, num_envs: int) -> None:
        """Change the number of environments."""
        super().resize(num_envs)
        self.env_cfg.scene.num_envs = num_envs

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Start what the task needs (nothing, or Isaac Sim) and create its environment, already reset."""
        from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

        if self._web is not None:
            # Isaac Lab's own default listens to the whole network
            self.env_cfg.sim.visualizer_cfgs = [viewer.web_viewer_cfg(self.env_cfg, *self._web)]
        with open_env(self.spec.id, self.env_cfg, self._launcher) as env:
            yield RslRlVecEnvWrapper(env, clip_actions=self.agent_cfg.clip_actions)

    def begin(self, env: Any, seed: int) -> None:
        """Seed everything that draws, and reset."""
        import torch

        with torch.inference_mode():
            env.seed(seed)
            env.reset()

    def dump(self, folder: Path) -> None:
        """Write the resolved configs into the run folder."""
        from isaaclab.utils import to_dict

        params = folder / "params"
        params.mkdir(parents=True, exist_ok=True)
        for name, cfg in (("env", self.env_cfg), ("agent", self.agent_cfg)):
            # as Isaac Lab's own dump_yaml, but whole or not at all
            replace_text(params / f"{name}.yaml", yaml.dump(to_dict(cfg), default_flow_style=False, sort_keys=False))

    def add_camera(self, view: str | None) -> None:
        """Put a camera into every environment, for one of the task's views."""
        from epo_lab.commands.video import add_camera, find_view

        find_view(self.env_cfg, view)
        add_camera(self.env_cfg)


def _kernels_cached() -> bool:
    """Return whether Warp has compiled kernels of a simulation before."""
    import warp as wp

    folder = Path(wp.config.kernel_cache_dir or Path.home() / ".cache/warp" / wp.config.version)
    return any(folder.glob("wp_isaaclab*")) or any(folder.glob("wp_newton*"))


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
    task: str,
    agent_key: str,
    base: list[str],
    overrides: list[str],
    *,
    size: str = DEFAULT,
    play_mode: bool = False,
) -> tuple[Any, Any, str]:
    """Return the env and agent configs of a task with presets and overrides applied, and what the size changes.

    Args:
        task: Id of the task.
        agent_key: Registry key of the agent.
        base: Overrides that come first: those of an experiment.
        overrides: Overrides of the user, which win.
        size: How large the run is.
        play_mode: Whether to apply the task's changes for playing.
    """
    from isaaclab.utils import to_dict
    from isaaclab_tasks.utils import resolve_task_config

    presets, paths = split_overrides(overrides)
    sized = [*presets]
    try:
        plain = resolve_task_config(task, agent_key, overrides=presets)
        named = _sizes(task)
        if size in named | _agent_presets(task, agent_key):
            sized.append(f"presets={size}")
        if size not in named and not play_mode:
            base = [f"env.scene.num_envs={FOREIGN_ENVS[size]}", *base]
        paths = [*base, *paths]
        check_paths(paths, *plain)
        env_cfg, agent_cfg = resolve_task_config(task, agent_key, play_mode=play_mode, overrides=[*sized, *paths])
        if sized != presets:
            plain = resolve_task_config(task, agent_key, play_mode=play_mode, overrides=[*presets, *paths])
    except ValueError as error:
        raise UserError(_preset_error(task, presets, error)) from None
    both = zip(("env", "agent"), plain, (env_cfg, agent_cfg), strict=True)
    changed = [item for path, old, new in both for item in changed_beyond_size(to_dict(old), to_dict(new), path)]
    return env_cfg, agent_cfg, f"; this size also sets {', '.join(changed)}" if changed else ""


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
    """Start what a task needs and create its environment."""
    from isaaclab.app import launch_simulation
    from isaaclab_rl.entrypoints.common import close_env

    with launch_simulation(env_cfg, launcher):
        try:
            env = gym.make(task, cfg=env_cfg)
        except FileNotFoundError as error:
            raise UserError(missing_asset(task, str(error))) from None
        try:
            yield env
        finally:
            close_env(env)


def missing_asset(task: str, message: str) -> str:
    """Return what to do about a robot or ground that could not be fetched."""
    address = re.search(r"\S+://\S+", message)
    path = message.rpartition(": ")[2] if address is None else address[0].rstrip("'\",")
    return (
        f"{task} needs {path}, which is not on this machine and cannot be fetched: connect to the network, or set"
        " ISAACSIM_ASSET_ROOT to a local copy of Isaac Sim's assets"
    )


def runner_settings(agent_cfg: Any) -> dict[str, Any]:
    """Return an agent config as the dict that rsl_rl's runner takes."""
    from isaaclab.utils import to_dict
    from isaaclab_rl.rsl_rl import check_rsl_rl_version, handle_deprecated_rsl_rl_cfg

    settings = to_dict(handle_deprecated_rsl_rl_cfg(agent_cfg, check_rsl_rl_version()))
    settings["logger"] = logger_settings(settings["logger"], settings)
    return settings


def _sizes(task: str) -> set[str]:
    """Return the names of all presets of a task that are no engines: sizes are among them."""
    from isaaclab_tasks.utils.preset_cli import enumerate_task_presets

    return {name for names in (enumerate_task_presets(task) or {}).values() for name in names}


def _agent_presets(task: str, agent_key: str) -> set[str]:
    """Return the names of all presets of an agent's config."""
    from isaaclab_tasks.utils.hydra import collect_presets
    from isaaclab_tasks.utils.parse_cfg import load_cfg_from_registry

    return {name for names in collect_presets(load_cfg_from_registry(task, agent_key)).values() for name in names}


def _preset_error(task: str, presets: list[str], error: ValueError) -> str:
    from isaaclab_tasks.utils.preset_cli import enumerate_task_presets

    available = enumerate_task_presets(task) or {}
    known = "; ".join(f"{kind.value}: {', '.join(names)}" for kind, names in available.items() if names)
    if presets:
        return f"{' '.join(presets)} does not fit {task}; its presets are {known}"
    return str(error)


@contextmanager
def open_scene(
    task: str, overrides: list[str], num_envs: int, seed: int = 0, prepare: Callable[[Any], None] | None = None
) -> Iterator[Any]:
    """Open a task without an agent, in the size of this machine, reset it and hand it out.

    Args:
        task: Id of the task.
        overrides: Presets and settings.
        num_envs: Number of environments.
        seed: Seed of the environments.
        prepare: Changes the config before the simulation starts. Defaults to None.
    """
    import torch

    spec = find_task(task)
    env_cfg, _, _ = resolve_configs(spec.id, PPO_ENTRY, [], overrides, size=default_size())
    env_cfg.scene.num_envs, env_cfg.seed = num_envs, seed
    if prepare is not None:
        prepare(env_cfg)
    launcher, _ = split_launcher_arguments([])
    launcher.device = env_cfg.sim.device
    with open_env(spec.id, env_cfg, launcher) as env, torch.inference_mode():
        env.unwrapped.reset()
        yield env.unwrapped
