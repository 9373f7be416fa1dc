"""Find, read and write checkpoints."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_file

from .folder import checkpoints, find_runs

LATEST = "latest"
BEST = "best"
BEST_NAME = "best.pt"
"""Checkpoint in which the master was best, of those that were written; stock commands look for ``model_*.pt`` only."""


def find_checkpoint(selector: str, *, root: Path, task: str, run_name: str | None = None) -> Path:
    """Return the checkpoint that a user named.

    Args:
        selector: ``latest`` or ``best`` of the newest run, a checkpoint file, or a run folder (its last checkpoint).
        root: Folder of the experiment's runs, for ``latest`` and ``best``.
        task: Task of the run, for ``latest`` and ``best``.
        run_name: Only runs of this name count for ``latest`` and ``best``. Defaults to None (all).
    """
    if selector in (LATEST, BEST):
        runs = find_runs(root, task, run_name)
        if not runs:
            named = f" named {run_name}" if run_name else ""
            raise UserError(f"no run of {task}{named} with a checkpoint in {root}: train first, or name a file")
        best = runs[-1] / BEST_NAME
        return best if selector == BEST and best.is_file() else checkpoints(runs[-1])[-1]
    path = Path(selector).expanduser()
    if path.is_dir():
        found = checkpoints(path)
        if not found:
            raise UserError(f"no checkpoint (model_<iteration>.pt) in {path}: name another run folder or a file")
        return found[-1].resolve()
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}: name a file, a run folder, 'latest' or 'best'")
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

    replace_file(path, lambda scratch: torch.save(content, scratch))


def prune_checkpoints(folder: Path, keep: int) -> None:
    """Delete all but the ``keep`` newest numbered checkpoints; 0 keeps all."""
    if keep > 0:
        for path in checkpoints(folder)[:-keep]:
            path.unlink(missing_ok=True)
