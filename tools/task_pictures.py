"""Pictures and films of tasks for the documentation, rendered without Kit and without a checkpoint."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.commands.backends import isaac
from epo_lab.commands.quiet import quiet
from epo_lab.commands.tasks import find_task
from epo_lab.commands.video import Recorder, add_camera, write_gif
from epo_lab.configs.presets import PPO_ENTRY

SIZE = (640, 480)


def open_filmed(task: str, overrides: list[str], num_envs: int = 1, seed: int = 0) -> AbstractContextManager[Any]:
    """Open a task with cameras, reset it and hand it out."""
    return isaac.open_scene(task, overrides, num_envs, seed, prepare=lambda cfg: add_camera(cfg, SIZE))


def take_picture(task: str, folder: Path, overrides: list[str], *, seed: int = 0, verbose: bool = False) -> Path:
    """Write one picture of a task, all its views side by side, and return its path."""
    import numpy as np
    import torch
    from PIL import Image

    path = folder / f"{find_task(task).id}.png"
    with quiet(f"Taking the picture of {task}", verbose=verbose), open_filmed(task, overrides, seed=seed) as env:
        for _ in range(env.cfg.settle_steps):
            env.step(torch.zeros(1, env.action_manager.total_action_dim, device=env.device))
        frames = []
        for view in env.cfg.video_views:
            recorder = Recorder(env, view)
            recorder.take()
            frames += recorder.frames
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(frames, axis=1)).quantize(128).save(path, optimize=True)
    return path


def draw_terrain(task: str, folder: Path, overrides: list[str], *, verbose: bool = False) -> list[Path]:
    """Write pictures of a task's terrain into ``<folder>/parkour`` and return their paths."""
    cfg, _, _ = isaac.resolve_configs(find_task(task).id, PPO_ENTRY, [], overrides)
    terrain = getattr(cfg.scene, "terrain", None)
    if terrain is None:
        raise UserError(f"{task} has no terrain: leave --terrain out")
    from terrain_pictures import draw_field

    with quiet(f"Drawing the terrain of {task}", verbose=verbose):
        return draw_field(folder / "parkour", terrain.terrain_generator)


def film(env: Any, controller: Any, path: Path, *, every: int = 4, view: str | None = None) -> Path:
    """Film a controller that has ``num_steps`` and ``act()``; every so manieth step becomes a picture of a gif."""
    path.parent.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(env, view)
    for step in range(controller.num_steps):
        env.step(controller.act())
        if step % every == 0:
            recorder.take()
    return write_gif(recorder.frames, path, fps=1.0 / (every * env.step_dt))
