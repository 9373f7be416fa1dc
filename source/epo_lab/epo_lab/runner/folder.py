"""Run folders: ``logs/rsl_rl/<experiment>/<time>[_<run name>]``, laid out as Isaac Lab's own commands expect them.

| in the folder | what it is |
|---|---|
| ``run.json`` | task, agent and time of the start; how ``latest`` finds the folder |
| ``command.txt`` | the command line of every start |
| ``params/`` | resolved env and agent configs |
| ``git/`` | commit and uncommitted changes |
| ``environment.json`` | versions of the packages, and the machine |
| ``setup.log`` | what Isaac Lab printed while it started |
| ``curves.csv``, ``curves.png``, ``events.*`` | every logged scalar, as table, picture and TensorBoard file |
| ``model_<iteration>.pt``, ``best.pt`` | checkpoints, and the one in which the master was best |
| ``replay.pt`` | transitions of an off-policy agent, of the newest checkpoint; not above 2 GB unless asked for |
| ``physics.pt``, ``physics_<rank>.pt`` | running episodes, of the newest checkpoint; with ``agent.save_physics`` only |
| ``lineage.jsonl``, ``population.jsonl`` | every generation of a population; now and then every agent by itself |
| ``pbt.jsonl`` | every change of population-based training |
| ``evaluation.json``, ``report.html`` | what ``evaluate.py`` and ``report.py`` write |
| ``aside/`` | what a resumed run could not use: damaged lines, checkpoints after the one it went on from |
| ``nonfinite.json`` | which environment, step and term stopped a run with non-finite numbers |
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_text

from . import environment

MANIFEST = "run.json"
MANIFEST_VERSION = 1
SETTINGS = "params/agent.yaml"
WANDB_ID = "wandb_id.txt"
"""File of the run folder that keeps the id of its W&B run."""
WANDB = "wandb:"
"""What the name of a checkpoint begins with that W&B keeps."""
LONGEST_NAME = 150
"""Bytes that a user may add to the name of a folder; file systems take 255 in all."""
PRETRAINED = "pretrained"
"""Folder of a policy that came with the package."""
LOCK = ".lock"
"""Held by the process that trains in a folder."""
CURVES, LINEAGE, CENSUS = "curves.csv", "lineage.jsonl", "population.jsonl"


def log_root(experiment: str) -> Path:
    """Return the folder of an experiment's runs, below the working directory as in Isaac Lab."""
    parts = str(experiment).split("/")
    if ".." in parts or not all(map(_is_name, parts)):
        raise UserError(f"--experiment_name {experiment!r} must name a folder below logs/rsl_rl, such as my_task")
    return Path("logs", "rsl_rl", *parts).resolve()


def _is_name(text: str) -> bool:
    """Return whether a text can be a part of a folder's name, beside the time and a number."""
    return bool(text) and text.isprintable() and "/" not in text and len(text.encode(errors="replace")) <= LONGEST_NAME


def check_writable(folder: Path) -> None:
    """Raise a :class:`UserError` if nothing can be written below ``folder``; nothing is created."""
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to {existing}: start from a folder you may write to, or change its permissions")


def output_file(path: Path, option: str = "--output") -> Path:
    """Return the file that an option names, with links followed; raise a :class:`UserError` if it cannot be one.

    Args:
        path: What the user named.
        option: The option.
    """
    try:
        target = path.expanduser().resolve()
        taken = target.exists() and not target.is_file()
        long = len(target.name.encode(errors="replace")) > LONGEST_NAME
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{option} {str(path)[:200]!r} cannot be written ({str(error)[:100]}): name another") from None
    if taken or not target.name:
        raise UserError(f"{option} {path} is no ordinary file: name another")
    if long:
        raise UserError(f"{option}: a file's name has at most {LONGEST_NAME} bytes here")
    check_writable(target.parent)
    return target


def new_run_folder(root: Path, run_name: str | None, timestamp: str | None = None) -> Path:
    """Return the path of a new run; the folder itself is created when there is something to put into it."""
    if run_name and "/" in run_name:
        raise UserError(f"--run_name {run_name!r}: it becomes a part of a folder's name, so leave out the slash")
    if run_name and not _is_name(run_name):
        shown = repr(run_name if len(run_name) <= 40 else f"{run_name[:40]}...")
        raise UserError(f"--run_name {shown} becomes a part of a folder's name: at most {LONGEST_NAME} printable bytes")
    name = timestamp or datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    return root / (f"{name}_{run_name}" if run_name else name)


@contextlib.contextmanager
def claim_run(folder: Path, *, new: bool) -> Iterator[Path]:
    """Keep every other process out of a run folder for as long as this lasts; a run that kept nothing is deleted.

    Args:
        folder: The folder of the run.
        new: Whether it is to be created: if another run took the name in the same second, a number is added to it.
    """
    name, number = folder.name, 1
    while new:
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            number += 1
            folder = folder.with_name(f"{name}-{number}")
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise UserError(
                f"{folder} is being trained by process {file.read().strip() or '?'}: stop that one first"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield folder
        finally:
            (folder / LOCK).unlink(missing_ok=True)
            if new and folder.is_dir() and not any(folder.iterdir()):
                discard_run(folder)


def discard_run(folder: Path) -> None:
    """Delete a run that has nothing to keep, and the folders above it that it leaves empty."""
    shutil.rmtree(folder, ignore_errors=True)
    # the name of an experiment may have several parts
    names = [parent.name for parent in folder.parents]
    depth = next((i + 2 for i, pair in enumerate(pairwise(names)) if pair == ("rsl_rl", "logs")), 1)
    with contextlib.suppress(OSError):
        for parent in list(folder.parents)[:depth]:
            parent.rmdir()


def write_manifest(
    folder: Path, *, task: str, agent: str, module: str = "", request: dict[str, Any] | None = None
) -> None:
    """Create the run folder and note what runs in it; a resumed run keeps its first manifest.

    Args:
        folder: The run folder.
        task: Id of the task.
        agent: Name of the agent.
        module: Module that registers the task, if the command line named one. Defaults to none.
        request: What the command line asked for. Defaults to None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "command.txt").open("a") as file:
        file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {shlex.join(sys.orig_argv)}\n")
    # a resumed run may go on in another environment; the last one counts
    replace_text(folder / environment.FILE_NAME, json.dumps(environment.environment(), indent=1) + "\n")
    if (folder / MANIFEST).exists():
        return
    manifest = {
        "version": MANIFEST_VERSION,
        "library": "rsl_rl",
        "task": task,
        "created_at": datetime.now(UTC).isoformat(),
        "metadata": {"agent": agent, **({"module": module} if module else {})},
        "request": request or {},
    }
    replace_text(folder / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what is noted about a run; nothing if the folder is none, or the note is damaged."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}
    groups = [manifest.get(name, {}) for name in ("metadata", "request")] if isinstance(manifest, dict) else [None]
    return manifest if all(isinstance(group, dict) for group in groups) else {}


def task_of(manifest: dict[str, Any]) -> str | None:
    """Return the task of a run as the command line takes it: with the module that registers it, if it has one."""
    task, module = manifest.get("task"), manifest.get("metadata", {}).get("module")
    return f"{module}:{task}" if task and module else task


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of the agent that a run was made with; none if they are not there."""
    path = folder / SETTINGS
    if not path.is_file():
        return {}
    try:
        return dict(parse_settings(path.read_text(errors="replace")))
    except (UserError, TypeError, ValueError):
        raise UserError(f"{path} is damaged, and without it the networks of the run cannot be built") from None


def parse_settings(text: str) -> Any:
    """Return settings from the text of a file of the run folder; nothing in it can run code."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads what Isaac Lab dumps: plain YAML, tuples, and of other objects only their names."""

    def read_tuple(loader: Any, node: Any) -> tuple[Any, ...]:
        return tuple(loader.construct_sequence(node))

    def read_name(loader: Any, name: str, node: Any) -> str:
        return name

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", read_tuple)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", read_name)
    try:
        return yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"settings that cannot be read: {str(error).splitlines()[0]}") from None


def find_runs(root: Path, task: str, run_name: str | None = None) -> list[Path]:
    """Return the runs of a task that have a checkpoint, oldest first."""
    found = []
    for manifest_path in root.glob(f"*/{MANIFEST}"):
        folder = manifest_path.parent
        manifest = read_manifest(folder)
        if manifest.get("task") != task or not checkpoints(folder) or folder.name == PRETRAINED:
            continue
        if run_name and folder.name[len("YYYY-MM-DD_HH-MM-SS_") :] != run_name:
            continue
        found.append((manifest.get("created_at", ""), folder))
    return [folder for _, folder in sorted(found)]


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run in the order of their iterations."""
    return sorted((path for path in folder.glob("model_*.pt") if _NUMBER.fullmatch(path.name)), key=iteration_of)


def iteration_of(checkpoint: Path) -> int:
    """Return the iteration that the name of a numbered checkpoint tells."""
    return int(checkpoint.stem.removeprefix("model_"))


_NUMBER = re.compile(r"model_(\d+)\.pt")
