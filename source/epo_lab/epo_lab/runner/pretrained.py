"""Policies that come with the package: weights only, one small file for each task that has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_file, replace_text

from .folder import MANIFEST, PRETRAINED

FOLDER = Path(__file__).parents[1] / "pretrained"
BUILT_BY = ("actor", "critic", "obs_groups", "algorithm")
"""Settings of a run without which its networks cannot be built again."""
MOST_BYTES = 2_000_000


def pretrained_tasks() -> list[str]:
    """Return the tasks that have a trained policy."""
    return sorted(path.stem for path in FOLDER.glob("*.pt"))


def unpack(task: str, root: Path) -> Path:
    """Write the task's policy as a run folder, so that every command can take it, and return that folder.

    Args:
        task: Id of the task.
        root: Folder of the experiment's runs.
    """
    import torch

    source = FOLDER / f"{task}.pt"
    if not source.is_file():
        there = ", ".join(pretrained_tasks()) or "none yet"
        raise UserError(f"there is no pretrained policy of {task}; there are: {there}. Train one, or name a file")
    content = torch.load(source, weights_only=True, map_location="cpu")
    folder = root / PRETRAINED
    (folder / "params").mkdir(parents=True, exist_ok=True)
    replace_text(folder / "params/agent.yaml", yaml.safe_dump(content["settings"]))
    manifest = {"task": task, "metadata": {"agent": content["agent"]}, "pretrained": content["origin"]}
    replace_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    replace_file(folder / f"model_{content['iter']}.pt", lambda scratch: torch.save(content, scratch))
    return folder


def pack(checkpoint: Path, settings: dict[str, Any], *, task: str, agent: str, origin: str) -> Path:
    """Write the policy of a checkpoint into the package, and return the file.

    Args:
        checkpoint: The checkpoint.
        settings: Settings of its run.
        task: Id of the task.
        agent: Name of the agent.
        origin: How it was trained and what it reaches, in a sentence.
    """
    import torch

    from .checkpoint import read_checkpoint

    content = read_checkpoint(checkpoint)
    genes = content["actor_state_dict"].get("genes")
    kept = {
        "iter": content["iter"],
        "infos": None,
        "num_members": content.get("num_members", 1 if genes is None else len(genes)),
        "actor_state_dict": content["actor_state_dict"],
        "settings": {name: settings[name] for name in BUILT_BY if name in settings},
        "task": task,
        "agent": agent,
        "origin": origin,
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{task}.pt"
    replace_file(path, lambda scratch: torch.save(kept, scratch))
    if path.stat().st_size > MOST_BYTES:
        size = path.stat().st_size
        path.unlink()
        raise UserError(f"{checkpoint} makes {size:,} bytes, more than {MOST_BYTES:,}: publish a smaller network")
    return path
