"""Find, read and write checkpoints."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

from epo_lab.errors import UserError

from .folder import checkpoints, find_runs

LATEST = "latest"


def find_checkpoint(selector: str, *, root: Path, task: str, run_name: str | None = None) -> Path:
    """Return the checkpoint that a user named.

    Args:
        selector: ``latest``, a checkpoint file, or a run folder (its last checkpoint is meant).
        root: Folder of the experiment's runs, for ``latest``.
        task: Task of the run, for ``latest``.
        run_name: Only runs of this name count for ``latest``. Defaults to None (all).
    """
    if selector == LATEST:
        runs = find_runs(root, task, run_name)
        if not runs:
            named = f" named {run_name}" if run_name else ""
            raise UserError(f"no run of {task}{named} with a checkpoint in {root}: train first, or name a file")
        return checkpoints(runs[-1])[-1]
    path = Path(selector).expanduser()
    if path.is_dir():
        found = checkpoints(path)
        if not found:
            raise UserError(f"no checkpoint (model_<iteration>.pt) in {path}: name another run folder or a file")
        return found[-1].resolve()
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}: name a file, a run folder or 'latest'")
    return path.resolve()


def read_checkpoint(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Return what a checkpoint holds; a file that is none is the user's to mend."""
    import torch

    try:
        content = torch.load(path, weights_only=False, map_location=device)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError, zipfile.BadZipFile, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UserError(f"cannot read checkpoint {path} ({reason}): it is damaged or none; use another one") from None
    if not isinstance(content, dict) or "iter" not in content:
        raise UserError(f"{path} holds no rsl_rl checkpoint: use a model_<iteration>.pt of a training run")
    return content


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint so that a reader, or a kill at any moment, finds either the whole file or none."""
    import torch

    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        torch.save(content, scratch)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
