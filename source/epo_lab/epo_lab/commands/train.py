"""Train an agent on a task."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from epo_lab.base.checkout import typed
from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.base.files import replace_text
from epo_lab.base.processes import launched_world_size, rank
from epo_lab.configs.sizes import default_size
from epo_lab.runner.checkpoint import LATEST, clear_killed, find_checkpoint, mend_run, newest_whole, read_checkpoint
from epo_lab.runner.folder import (
    check_writable,
    checkpoints,
    claim_run,
    discard_run,
    find_runs,
    log_root,
    new_run_folder,
    read_manifest,
    write_manifest,
)

from . import viewer
from .backends.base import Backend, make_backend
from .policy import fetched
from .quiet import loading, quiet
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
    # everything that can be wrong with the input is found before the simulation starts
    with quiet(loading(args.task), verbose=args.verbose):
        backend = _resolved(args, rest, config_dir)
        task = backend.spec.id
        root = log_root(backend.settings["experiment_name"])
        check_writable(root)
        folder, checkpoint, done, note = _where_to_start(args, root, task, backend.settings["run_name"])
        args, rest, changed = _as_begun(args, rest, folder) if done else (args, rest, [])
        if done:
            backend = _resolved(args, rest, config_dir)
        backend.check_training()
    if note:
        print(note)
    settings = backend.settings
    remaining = settings["max_iterations"] - done
    if remaining <= 0:
        if rank() == 0:
            with claim_run(folder, new=False):
                mend_run(folder, settings.get("keep_checkpoints", 0))
        print(f"{folder} is complete: {done} of {done + remaining} iterations; --max_iterations is the total")
        return 0
    first = rank() == 0
    if first:
        print(_summary(backend, args))
        if changed:
            print(f"Going on with the run's own settings; changed by this command: {', '.join(changed)}")

    with ExitStack() as stack:
        with quiet(backend.starting, verbose=args.verbose) as said:
            env = stack.enter_context(backend.open())
            # caught here, because Isaac Lab's launcher prints a traceback of what passes through it
            stack.enter_context(exit_on_user_error("train"))
            if first:
                clear_killed(root)
                folder = stack.enter_context(claim_run(folder, new=done == 0))
            runner = _make_runner(env, backend, folder)
        if done > 0:
            runner.resume(str(checkpoint), _changed_envs(changed))
        elif checkpoint is not None:
            runner.load(str(checkpoint))
        if first:
            module = args.task.rpartition(":")[0]
            write_manifest(folder, task=task, agent=backend.agent_key, module=module, request=_request(args, rest))
            backend.dump(folder)
            replace_text(folder / "setup.log", "".join(said))
            print(f"Run folder: {folder}")
            if done > 0 and not runner.goes_on:
                print(f"Every environment begins a new episode: {runner.because}")
        try:
            watch = _watch(env, runner, folder, args) if viewer.wants(args.viz, "viser") and first else None
            stopped = runner.learn(remaining, init_at_random_ep_len=settings["init_at_random_ep_len"], watch=watch)
        except UserError:
            if first and done == 0 and not checkpoints(folder):
                # found by the first steps of a new run: nothing stays behind
                discard_run(folder)
            raise
    if first:
        print(_ending(stopped, folder, args.task))
    return EXIT_CODES[stopped]


def _watch(env: Any, runner: Any, folder: Path, args: argparse.Namespace) -> Callable[[int], None]:
    """Say where to watch, name the agents there, and return what keeps the names up to date."""
    agents = runner.alg.env_members()
    # tasks of others have no view to hang names above
    labels = viewer.Labels(env.unwrapped, agents, []) if agents and hasattr(env.cfg, "video_views") else None
    print(f"Watch: {viewer.url(args.host, args.port)}", flush=True)

    def watch(iteration: int) -> None:
        if labels is not None:
            labels.tell(viewer.fitness_of(folder, iteration))
            labels.update()

    return watch


SHAPING = ("agent", "seed", "num_envs", "max_iterations", "profile", "experiment", "experiment_name", "run_name")
"""Options of the command line that decide what a run is; a resumed run takes them from its folder."""


def _request(args: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    """Return what the command line asked for, as the run folder keeps it."""
    options = {name: getattr(args, name, None) for name in SHAPING}
    return {**{name: value for name, value in options.items() if value is not None}, "overrides": list(rest)}


def _as_begun(
    args: argparse.Namespace, rest: list[str], folder: Path
) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return options and overrides of a run that goes on, its own and then this command's, and what these change."""
    begun = read_manifest(folder).get("request", {})
    agent = begun.get("agent")
    if agent is not None and args.agent not in (None, agent):
        raise UserError(f"{folder} is a run of --agent {agent}: leave out --agent {args.agent}, or begin a new run")
    given = _request(args, rest)
    changed = [
        f"--{name} {value} (was {begun[name]})"
        for name, value in given.items()
        if name in begun and name != "overrides" and value != begun[name]
    ]
    own = begun.get("overrides", [])
    changed += [token for token in rest if token not in own and "=" in token]
    options = argparse.Namespace(**{**vars(args), **{k: v for k, v in {**begun, **given}.items() if k != "overrides"}})
    return options, [*own, *(token for token in rest if token not in own)], changed


def _changed_envs(changed: list[str]) -> str:
    """Return what of the changes of a command makes other environments, in words; nothing if nothing does."""
    own = ("agent.", "--max_iterations", "--run_name", "--experiment_name")
    found = [change for change in changed if not change.startswith(own)]
    return f"this command changes the environments ({', '.join(found)})" if found else ""


def _resolved(args: argparse.Namespace, rest: list[str], config_dir: Path) -> Backend:
    """Return the backend of the task with all settings in place."""
    backend = make_backend(find_task(args.task))
    backend.resolve(args, rest, config_dir)
    return backend


def _where_to_start(
    args: argparse.Namespace, root: Path, task: str, run_name: str
) -> tuple[Path, Path | None, int, str]:
    """Return the folder of the run, the checkpoint to begin from, if any, the iterations done, and a note, if any."""
    if args.auto_resume and not run_name:
        raise UserError("--auto_resume needs --run_name, by which the run is found again")
    if args.resume or (args.auto_resume and find_runs(root, task, run_name)):
        # with --auto_resume alone a checkpoint is what the first start of this run began from
        selector = args.checkpoint if args.resume else None
        checkpoint = find_checkpoint(selector or LATEST, root=root, task=task, run_name=run_name)
        note = ""
        if selector in (None, LATEST) or Path(selector).expanduser().is_dir():
            # of a run, the newest checkpoint that can be read; a file that is named is meant
            checkpoint, note = newest_whole(checkpoint.parent)
        trained_on = read_manifest(checkpoint.parent).get("task", task)
        if trained_on != task:
            raise UserError(f"{checkpoint.parent} is a run of {trained_on}: go on with --task {trained_on}")
        return checkpoint.parent, checkpoint, read_checkpoint(checkpoint)["iter"] + 1, note
    checkpoint = None
    if args.checkpoint:
        checkpoint = find_checkpoint(fetched(args.checkpoint), root=root, task=task)
        read_checkpoint(checkpoint)
    return new_run_folder(root, run_name), checkpoint, 0, ""


def _make_runner(env: Any, backend: Backend, folder: Path) -> Any:
    from epo_lab.runner.runner import EpoRunner

    settings = backend.settings
    metric = metric_tag(backend.spec)
    try:
        return EpoRunner(env, settings, log_dir=str(folder), device=settings["device"], metric=metric)
    except ValueError as error:
        if "in observation set" not in str(error):
            raise
        raise UserError(f"agent.obs_groups: {error}") from None


def _summary(backend: Backend, args: argparse.Namespace) -> str:
    """Return the line that says what is about to run."""
    from epo_lab.algorithms import registry

    actor, agents = backend.settings["actor"], backend.num_agents
    net = "-".join(map(str, actor["hidden_dims"]))
    if "rnn_type" in actor and registry.find(backend.settings["algorithm"]).recurrent:
        net = f"{actor['rnn_type'].upper()} {actor['rnn_hidden_dim']} + {net}"
    size = args.profile or default_size()
    why = " (no CUDA found)" if args.profile is None and size == "cpu" else ""
    processes = f", {launched_world_size()} processes" if launched_world_size() > 1 else ""
    return (
        f"{backend.spec.id}, agent {backend.agent_name}, size {size}{why}: {backend.num_envs} envs,"
        f" {agents} agent{'s' if agents > 1 else ''}{_without_evolution(backend)}, net {net},"
        f" {backend.engine} on {backend.device}{processes}{backend.size_note}"
    )


def _without_evolution(backend: Backend) -> str:
    """Return a warning if the population is too small for a generation."""
    from epo_lab.population.genetics import MIN_AGENTS

    wanted = backend.settings["algorithm"].get("evolution", {}).get("trigger", "off") != "off"
    return f" (evolution needs {MIN_AGENTS})" if wanted and 1 < backend.num_agents < MIN_AGENTS else ""


def _ending(stopped: signal.Signals | None, folder: Path, task: str) -> str:
    if stopped is None:
        return f"Done. Look at it: {typed('play')} --task {task} --checkpoint {folder}"
    again = f"{typed('train')} --task {task} --resume --checkpoint {folder}"
    return f"Stopped by {stopped.name}; the checkpoint is saved. Go on: {again}"
