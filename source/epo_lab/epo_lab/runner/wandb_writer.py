"""W&B with a group, tags, an offline mode and checkpoints as artifacts; a resumed run goes on as the same W&B run.

A film that is made when the run has ended is sent to it as well.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import wandb
import yaml
from rsl_rl.utils.wandb_log_writer import WandbLogWriter
from torch.utils.tensorboard import SummaryWriter

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_text

from .curves import ITERATION, read_curves
from .folder import CURVES, MANIFEST, SETTINGS, WANDB_ID

BESIDE = (MANIFEST, SETTINGS)
"""Files of the run folder that say what a checkpoint was trained on, and how its networks are built."""
Mode = Literal["online", "offline", "disabled"]


class WandbWriter(WandbLogWriter):
    """rsl_rl's writer with more of W&B's options."""

    def __init__(
        self,
        log_dir: str,
        project_name: str,
        entity: str | None = None,
        group: str | None = None,
        tags: list[str] | None = None,
        mode: Mode | None = None,
    ) -> None:
        """Begin a W&B run, or go on with the one of this folder. What is None is left to W&B's own variables.

        Args:
            log_dir: Run folder.
            project_name: Project.
            entity: User or team. Defaults to None.
            group: Group of the run. Defaults to None.
            tags: Tags of the run. Defaults to None.
            mode: ``online``, ``offline`` or ``disabled``. Defaults to None.
        """
        SummaryWriter.__init__(self, log_dir, flush_secs=10)
        self.logged_videos = set()
        try:
            run = wandb.init(
                project=project_name,
                entity=entity,
                group=group,
                tags=tags,
                mode=mode,
                name=Path(log_dir).name,
                id=_read_id(Path(log_dir)),
                resume="allow",
                config={"log_dir": log_dir},
            )
        except wandb.Error as error:
            raise UserError(f"W&B: {error}; --wandb_mode offline needs no login and no network") from None
        replace_text(Path(log_dir) / WANDB_ID, f"{run.id}\n")

    def store_config(self, env_cfg: Any, train_cfg: dict) -> None:
        """Store the settings; those of a resumed run may have changed."""
        try:
            env = env_cfg.to_dict()
        except Exception:  # as in rsl_rl: configs come from anywhere
            env = asdict(env_cfg)
        wandb.config.update({"train_cfg": train_cfg, "env_cfg": env}, allow_val_change=True)

    def save_model(self, model_path: str, it: int) -> None:
        """Send a checkpoint as a version of the run's artifact, with what every command needs to take it."""
        folder = Path(model_path).parent
        artifact = wandb.Artifact(artifact_name(_read_id(folder) or ""), type="model", metadata={"iteration": it})
        for name in (Path(model_path).name, *BESIDE):
            if (folder / name).is_file():
                artifact.add_file(str(folder / name), name=name)
        wandb.log_artifact(artifact, aliases=["latest", f"iteration-{it}"])

    def add_table(self, tag: str, header: list[Any], rows: list[list[Any]], step: int) -> None:
        """Log a table."""
        wandb.log({tag: wandb.Table(columns=header, data=rows)}, step=step)

    def add_picture(self, tag: str, picture: np.ndarray, step: int) -> None:
        """Log a picture of shape (height, width, 3)."""
        wandb.log({tag: wandb.Image(picture)}, step=step)


def artifact_name(run_id: str) -> str:
    """Return the name of the artifact that holds the checkpoints of a W&B run."""
    return f"policy-{run_id}"


def fetch(path: str, root: Path) -> Path:
    """Download the checkpoint of a W&B run as a run folder, and return that folder.

    Args:
        path: ``entity/project/run``, or ``entity/project/run:iteration-100`` for another than the latest.
        root: Folder to put it into.
    """
    words, _, version = path.partition(":")
    entity, _, rest = words.partition("/")
    project, _, run_id = rest.partition("/")
    if not (entity and project and run_id) or "/" in run_id:
        raise UserError(f"wandb:{path}: name a run as wandb:entity/project/run_id")
    name = f"{entity}/{project}/{artifact_name(run_id)}:{version or 'latest'}"
    try:
        artifact = wandb.Api().artifact(name, type="model")
        return Path(artifact.download(root=str(root / f"{run_id}_{artifact.version}")))
    except (wandb.Error, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"W&B has no checkpoint {name} for this login: {reason}") from None


def send_film(folder: Path, film: Path) -> str | None:
    """Send a film to the W&B run of a run folder that has ended, and return the run's id; None if it has no W&B run.

    Args:
        folder: Run folder.
        film: An mp4 or a gif.
    """
    run_id = _read_id(folder)
    if run_id is None:
        return None
    options = yaml.safe_load((folder / SETTINGS).read_text())["logger"]
    # Note: without a network nobody knows where the run's history ended; a row before its end would be dropped
    offline = options.get("mode") == "offline"
    step = int(read_curves(folder / CURVES)[1][-1][ITERATION]) + 1 if offline else None
    try:
        run = wandb.init(
            project=options["project_name"],
            entity=options.get("entity"),
            mode=options.get("mode"),
            id=run_id,
            resume="allow",
            dir=str(folder),
            settings=wandb.Settings(silent=True),
        )
        kind: Literal["gif", "mp4"] = "gif" if film.suffix == ".gif" else "mp4"
        run.log({"video": wandb.Video(str(film), format=kind)}, step=step)
        run.finish()
    except wandb.Error as error:
        raise UserError(f"W&B did not take {film}: {str(error).splitlines()[0]}") from None
    return run_id


def _read_id(folder: Path) -> str | None:
    path = folder / WANDB_ID
    return path.read_text().strip() or None if path.is_file() else None
