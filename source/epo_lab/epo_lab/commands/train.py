"""Train an agent on a task."""

from __future__ import annotations

import argparse
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.base.processes import launched_world_size, rank
from epo_lab.configs.profiles import default_profile
from epo_lab.population.genetics import MIN_AGENTS
from epo_lab.runner.checkpoint import LATEST, find_checkpoint, read_checkpoint
from epo_lab.runner.folder import (
    check_writable,
    checkpoints,
    discard_run,
    find_runs,
    log_root,
    new_run_folder,
    read_manifest,
    write_manifest,
)

from .backends.base import Backend, make_backend
from .quiet import quiet
from .tasks import find_task, metric_tag

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
        backend = make_backend(find_task(args.task))
        backend.resolve(args, rest, config_dir)
        backend.check_training()
    settings, task = backend.settings, backend.spec.id

    # everything that can be wrong with the input is found before the simulation starts
    root = log_root(settings["experiment_name"])
    check_writable(root)
    folder, checkpoint, done = _where_to_start(args, root, task, settings["run_name"])
    remaining = settings["max_iterations"] - done
    if remaining <= 0:
        print(f"{folder} is complete: {done} of {done + remaining} iterations; --max_iterations is the total")
        return 0
    first = rank() == 0
    if first:
        print(_summary(backend, args))

    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=args.verbose) as setup_log:
            env = stack.enter_context(backend.open())
            # caught here, because Isaac Lab's launcher prints a traceback of what passes through it
            stack.enter_context(exit_on_user_error("train"))
            runner = _make_runner(env, backend, folder, checkpoint, resume=done > 0)
        if first:
            write_manifest(folder, task=task, agent=backend.agent_key)
            backend.dump(folder)
            shutil.copyfile(setup_log, folder / "setup.log")
            print(f"Run folder: {folder}")
            if done > 0 and not runner.goes_on:
                print("Every environment begins a new episode: checkpoints do not hold the state of its simulation")
        try:
            stopped = runner.learn(remaining, init_at_random_ep_len=settings["init_at_random_ep_len"])
        except UserError:
            if first and done == 0 and not checkpoints(folder):
                # found by the first steps of a new run: nothing stays behind
                discard_run(folder)
            raise
    if first:
        print(_ending(stopped, folder, task))
    return EXIT_CODES[stopped]


def _where_to_start(args: argparse.Namespace, root: Path, task: str, run_name: str) -> tuple[Path, Path | None, int]:
    """Return the folder of the run, the checkpoint to begin from, if any, and the number of iterations done."""
    if args.auto_resume and not run_name:
        raise UserError("--auto_resume needs --run_name, by which the run is found again")
    if args.resume or (args.auto_resume and find_runs(root, task, run_name)):
        # with --auto_resume alone a checkpoint is what the first start of this run began from
        selector = args.checkpoint if args.resume else None
        checkpoint = find_checkpoint(selector or LATEST, root=root, task=task, run_name=run_name)
        trained_on = read_manifest(checkpoint.parent).get("task", task)
        if trained_on != task:
            raise UserError(f"{checkpoint.parent} is a run of {trained_on}: go on with --task {trained_on}")
        return checkpoint.parent, checkpoint, read_checkpoint(checkpoint)["iter"] + 1
    checkpoint = None
    if args.checkpoint:
        checkpoint = find_checkpoint(args.checkpoint, root=root, task=task)
        read_checkpoint(checkpoint)
    return new_run_folder(root, run_name), checkpoint, 0


def _make_runner(env: Any, backend: Backend, folder: Path, checkpoint: Path | None, *, resume: bool) -> Any:
    from epo_lab.runner.runner import EpoRunner

    settings = backend.settings
    runner = EpoRunner(env, settings, log_dir=str(folder), device=settings["device"], metric=metric_tag(backend.spec))
    if resume:
        runner.resume(str(checkpoint))
    elif checkpoint is not None:
        runner.load(str(checkpoint))
    return runner


def _summary(backend: Backend, args: argparse.Namespace) -> str:
    """Return the line that says what is about to run."""
    actor, agents = backend.settings["actor"], backend.num_agents
    net = "-".join(map(str, actor["hidden_dims"]))
    if "rnn_type" in actor:
        net = f"{actor['rnn_type'].upper()} {actor['rnn_hidden_dim']} + {net}"
    profile = args.profile or default_profile()
    why = " (no CUDA found)" if args.profile is None and profile == "cpu" else ""
    processes = f", {launched_world_size()} processes" if launched_world_size() > 1 else ""
    return (
        f"{backend.spec.id}, agent {args.agent or 'default'}, profile {profile}{why}: {backend.num_envs} envs,"
        f" {agents} agent{'s' if agents > 1 else ''}{_without_evolution(backend)}, net {net},"
        f" {backend.engine} on {backend.device}{processes}"
    )


def _without_evolution(backend: Backend) -> str:
    """Return a warning if the population is too small for a generation."""
    wanted = backend.settings["algorithm"].get("evolution", {}).get("trigger", "off") != "off"
    return f" (evolution needs {MIN_AGENTS})" if wanted and 1 < backend.num_agents < MIN_AGENTS else ""


def _ending(stopped: signal.Signals | None, folder: Path, task: str) -> str:
    if stopped is None:
        return f"Done. Look at it: ./isaaclab.sh -p scripts/play.py --task {task} --checkpoint {folder}"
    again = f"./isaaclab.sh -p scripts/train.py --task {task} --resume --checkpoint {folder}"
    return f"Stopped by {stopped.name}; the checkpoint is saved. Go on: {again}"
