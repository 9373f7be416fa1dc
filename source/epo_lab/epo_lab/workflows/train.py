"""Train an agent on a task."""

from __future__ import annotations

import argparse
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from epo_lab.cfg.profiles import default_profile, profile_overrides
from epo_lab.errors import UserError, exit_on_user_error
from epo_lab.runs.checkpoint import LATEST, find_checkpoint, read_checkpoint
from epo_lab.runs.folder import check_writable, log_root, new_run_folder, write_manifest

from . import isaac
from .quiet import quiet
from .tasks import agent_entry_point, find_task, metric_tag

EXIT_CODES = {None: 0, signal.SIGINT: 130, signal.SIGTERM: 143}
"""Exit code by the signal that ended the run; in each case the last checkpoint is whole."""


def train(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Train and return the exit code.

    Args:
        args: Options of ``scripts/train.py``.
        rest: What that script did not understand: launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    with quiet("Loading the task", verbose=args.verbose):
        spec = find_task(args.task)
        agent_key = agent_entry_point(spec, args.agent)
        profile = args.profile or default_profile()
        launcher, overrides = isaac.split_launcher_arguments(rest)
        overrides = isaac.engine_for_viewer(args.viz, overrides)
        base = profile_overrides(config_dir, profile, spec.id, args.experiment)
        env_cfg, agent_cfg = isaac.resolve_configs(spec.id, agent_key, base, overrides)
    _apply_options(args, launcher, env_cfg, agent_cfg)

    # everything that can be wrong with the input is found before the simulation starts
    root = log_root(agent_cfg.experiment_name)
    check_writable(root)
    folder, checkpoint, done = _where_to_start(args, root, spec.id, agent_cfg)
    remaining = agent_cfg.max_iterations - done
    if remaining <= 0:
        print(f"{folder} is complete: {done} of {agent_cfg.max_iterations} iterations; --max_iterations is the total")
        return 0
    print(_summary(spec.id, args.agent, profile, args.profile is None, env_cfg, agent_cfg))

    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=args.verbose) as setup_log:
            env = stack.enter_context(isaac.open_env(spec.id, env_cfg, launcher))
            # caught here, because Isaac Lab's launcher prints a traceback of what passes through it
            stack.enter_context(exit_on_user_error("train"))
            wrapped = isaac.wrap_env(env, agent_cfg)
            runner = _make_runner(wrapped, agent_cfg, folder, checkpoint, done, metric_tag(spec))
        write_manifest(folder, task=spec.id, agent=agent_key)
        isaac.dump_configs(folder, env_cfg, agent_cfg)
        shutil.copyfile(setup_log, folder / "setup.log")
        print(f"Run folder: {folder}")
        stopped = runner.learn(remaining, init_at_random_ep_len=agent_cfg.init_at_random_ep_len)
    print(_ending(stopped, folder, args, spec.id))
    return EXIT_CODES[stopped]


def _apply_options(args: argparse.Namespace, launcher: argparse.Namespace, env_cfg: Any, agent_cfg: Any) -> None:
    """Put the options of the command line into the configs; they win over profiles and overrides."""
    if args.num_envs is not None:
        env_cfg.scene.num_envs = args.num_envs
    if env_cfg.scene.num_envs < 1:
        raise UserError(f"--num_envs {env_cfg.scene.num_envs}: at least one environment is needed")
    for name in ("max_iterations", "seed", "experiment_name", "run_name", "logger"):
        if getattr(args, name) is not None:
            setattr(agent_cfg, name, getattr(args, name))
    if args.log_project_name is not None:
        agent_cfg.wandb_project = agent_cfg.neptune_project = args.log_project_name
    if args.device is not None:
        env_cfg.sim.device = agent_cfg.device = args.device
    isaac.check_device(env_cfg.sim.device)
    launcher.device, launcher.visualizer = env_cfg.sim.device, args.viz
    isaac.check_launch(env_cfg, launcher)
    # some randomization happens while the environment is made, so it needs the seed too
    env_cfg.seed = agent_cfg.seed


def _where_to_start(args: argparse.Namespace, root: Path, task: str, agent_cfg: Any) -> tuple[Path, Path | None, int]:
    """Return the folder of the run, the checkpoint to begin from, if any, and the number of iterations done."""
    if args.resume:
        checkpoint = find_checkpoint(args.checkpoint or LATEST, root=root, task=task, run_name=agent_cfg.run_name)
        return checkpoint.parent, checkpoint, read_checkpoint(checkpoint)["iter"] + 1
    checkpoint = None
    if args.checkpoint:
        checkpoint = find_checkpoint(args.checkpoint, root=root, task=task)
        read_checkpoint(checkpoint)
    return new_run_folder(root, agent_cfg.run_name), checkpoint, 0


def _make_runner(env: Any, agent_cfg: Any, folder: Path, checkpoint: Path | None, done: int, metric: str) -> Any:
    from epo_lab.runners.epo_runner import EpoRunner

    settings = isaac.runner_settings(agent_cfg)
    runner = EpoRunner(env, settings, log_dir=str(folder), device=agent_cfg.device, metric=metric)
    if done:
        runner.resume(str(checkpoint))
    elif checkpoint is not None:
        runner.load(str(checkpoint))
    return runner


def _summary(task: str, agent: str | None, profile: str, chosen_by_itself: bool, env_cfg: Any, agent_cfg: Any) -> str:
    """Return the line that says what is about to run."""
    agents = getattr(agent_cfg.algorithm, "num_agents", 1)
    net = "-".join(map(str, agent_cfg.actor.hidden_dims))
    why = " (no CUDA found)" if chosen_by_itself and profile == "cpu" else ""
    engine = type(env_cfg.sim.physics).__name__.removesuffix("Cfg")
    return (
        f"{task}, agent {agent or 'default'}, profile {profile}{why}: {env_cfg.scene.num_envs} envs,"
        f" {agents} agent{'s' if agents > 1 else ''}, net {net}, {engine} on {env_cfg.sim.device}"
    )


def _ending(stopped: signal.Signals | None, folder: Path, args: argparse.Namespace, task: str) -> str:
    if stopped is None:
        return f"Done. Look at it: ./isaaclab.sh -p scripts/play.py --task {task} --checkpoint {folder}"
    again = f"./isaaclab.sh -p scripts/train.py --task {task} --resume --checkpoint {folder}"
    return f"Stopped by {stopped.name}; the checkpoint is saved. Go on: {again}"
