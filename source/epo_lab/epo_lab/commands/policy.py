"""The policy of a checkpoint: found, built as it was trained, and ready to act for any agent of its population."""

from __future__ import annotations

import argparse
import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.evaluation.policy import Policy
from epo_lab.runner.checkpoint import BEST, LATEST, find_checkpoint, read_checkpoint
from epo_lab.runner.folder import PRETRAINED, WANDB, log_root, read_manifest, read_settings, task_of
from epo_lab.runner.pretrained import BUILT_BY, unpack

from .backends.base import Backend, make_backend
from .tasks import find_task


@dataclass(frozen=True)
class Trained:
    """A checkpoint and the task and settings it was trained with."""

    checkpoint: Path
    iteration: int
    backend: Backend
    num_agents: int

    @property
    def name(self) -> str:
        """Name of the run, and of the checkpoint if it is not a numbered one."""
        stem = self.checkpoint.stem
        return self.checkpoint.parent.name + ("" if stem.startswith("model_") else f" {stem}")


def find_trained(selector: str | None, args: argparse.Namespace, rest: list[str], config_dir: Path) -> Trained:
    """Find a checkpoint and resolve its task and agent; what the command line leaves open, its run folder says.

    Args:
        selector: A file, a run folder, ``latest``, ``best``, ``wandb:PATH`` or ``pretrained``. None is ``latest``.
        args: Options of the script.
        rest: Launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    if selector == PRETRAINED:
        return find_trained(_unpacked(args), args, rest, config_dir)
    selector = None if selector is None else fetched(selector)
    path = None if selector in (None, LATEST, BEST) else Path(selector).expanduser()
    if path is not None and not path.exists():
        raise UserError(f"no checkpoint at {path}: name a file, a run folder, 'latest', 'best' or 'pretrained'")
    manifest = {} if path is None else read_manifest(path if path.is_dir() else path.parent)
    options = argparse.Namespace(**vars(args))
    options.task = args.task or task_of(manifest)
    options.agent = args.agent or _agent_of(manifest)
    backend = make_backend(find_task(options.task))
    backend.resolve(options, rest, config_dir, play_mode=not getattr(args, "train_env_cfg", False))
    if not manifest:
        root = log_root(backend.settings["experiment_name"])
        found = find_checkpoint(selector or LATEST, root=root, task=backend.spec.id, run_name=args.run_name)
        manifest = read_manifest(found.parent)
        if args.agent is None and _agent_of(manifest) is not None:
            return find_trained(str(found), args, rest, config_dir)
    else:
        found = find_checkpoint(str(path), root=Path(), task=backend.spec.id)
    if manifest.get("task", backend.spec.id) != backend.spec.id:
        raise UserError(f"{found} was trained on {manifest['task']}, not on {backend.spec.id}: change --task")
    content = read_checkpoint(found)
    # a checkpoint that rsl_rl's own runner wrote does not name them
    genes = content.get("actor_state_dict", {}).get("genes")
    num_members = content.get("num_members", 1 if genes is None else len(genes))
    num_members = _restore(backend, found.parent, num_members)
    return Trained(found, int(content["iter"]), backend, num_members)


def _unpacked(args: argparse.Namespace) -> str:
    """Write the policy that came with the package as a run folder, and return it."""
    spec = find_task(args.task)
    return str(unpack(spec.id, log_root(spec.id)))


def fetched(selector: str) -> str:
    """Return the name of a checkpoint on this machine; one of W&B is downloaded."""
    if not selector.startswith(WANDB):
        return selector
    from epo_lab.runner.wandb_writer import fetch

    return str(fetch(selector.removeprefix(WANDB), log_root("wandb")))


def choose_agents(text: str, trained: Trained) -> list[int]:
    """Return the agents of ``all``, ``master`` or a list of numbers."""
    if text == "all":
        return list(range(trained.num_agents))
    try:
        agents = [0] if text == "master" else [int(word) for word in text.split(",")]
    except ValueError:
        raise UserError(f"--members {text}: say all, master, or numbers such as 0,3") from None
    wrong = [agent for agent in agents if not 0 <= agent < trained.num_agents]
    if wrong:
        raise UserError(f"--members {wrong[0]}: {trained.checkpoint} has members 0 to {trained.num_agents - 1}")
    return list(dict.fromkeys(agents))


def _agent_of(manifest: dict[str, Any]) -> str | None:
    return manifest.get("metadata", {}).get("agent")


def _restore(backend: Backend, folder: Path, num_members: int) -> int:
    """Let the settings describe what was trained, whatever profile and overrides it came from.

    Returns how many members play.
    """
    settings = backend.settings
    from epo_lab.algorithms import registry
    from epo_lab.algorithms.on_policy.options import migrated

    saved = read_settings(folder)
    settings.update({name: saved[name] for name in BUILT_BY if saved.get(name)})
    settings["algorithm"] = migrated(settings["algorithm"])

    played = registry.find(settings["algorithm"]).played_as(settings["algorithm"])
    if played.get("num_agents", 1) is None:
        played["num_agents"] = num_members
    settings["algorithm"] = played
    return min(num_members, played.get("num_agents", num_members))


def load_policy(env: Any, trained: Trained) -> Policy:
    """Return the policy of a checkpoint."""
    from epo_lab.runner.runner import EpoRunner

    settings = trained.backend.settings
    with contextlib.redirect_stdout(io.StringIO()):  # rsl_rl prints its observation sets
        runner = EpoRunner(env, settings, log_dir=None, device=settings["device"])
    runner.load(str(trained.checkpoint), load_cfg={"actor": True}, map_location=settings["device"])
    return Policy(runner, trained.num_agents, env.device)
