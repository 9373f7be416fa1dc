"""Headless video without Kit: a camera that follows each robot, rendered with Warp on CPU or GPU."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epo_lab.base.errors import UserError

CAMERA = "video_camera"
SIZE = (480, 360)
"""Width and height of one environment's picture [px]."""
Color = tuple[int, int, int]
GOAL_COLOR: Color = (40, 120, 255)


def add_camera(env_cfg: Any, size: tuple[int, int] = SIZE) -> None:
    """Put a camera into every environment of a task."""
    import isaaclab.sim as sim_utils
    from isaaclab.sensors import CameraCfg
    from isaaclab_newton.renderers import NewtonWarpRendererCfg

    camera = CameraCfg(
        prim_path="{ENV_REGEX_NS}/VideoCamera",
        width=size[0],
        height=size[1],
        data_types=["rgb"],
        spawn=sim_utils.PinholeCameraCfg(focal_length=20.0, clipping_range=(0.05, 100.0)),
        renderer_cfg=NewtonWarpRendererCfg(enable_shadows=True),
    )
    setattr(env_cfg.scene, CAMERA, camera)


class Recorder:
    """Collects a grid of all environments' pictures, one a step; goals are drawn over them."""

    def __init__(self, env: Any, view: str | None = None, captions: Sequence[tuple[str, Color]] = ()) -> None:
        """Look at an environment with a camera.

        Args:
            env: The environment.
            view: Name of one of the task's views. Defaults to None: the first.
            captions: Text and colour to write on each environment's picture. Defaults to none.
        """
        self._captions = captions
        self._env = env
        self._camera = env.scene[CAMERA]
        self._view = find_view(env.cfg, view)
        self._center = None
        self.frames: list[np.ndarray] = []

    def take(self) -> None:
        """Aim the cameras and add a frame."""
        target = self._target()
        # a low-pass filter on the target keeps a trotting base from shaking the picture
        self._center = target if self._center is None else 0.9 * self._center + 0.1 * target
        eye = self._center + self._center.new_tensor(self._view.eye)
        self._camera.set_world_poses_from_view(eye, self._center + self._center.new_tensor(self._view.target))
        self._env.sim.forward()
        self._camera.update(0.0, force_recompute=True)
        pictures = self._camera.data.output["rgb"]
        pictures = pictures.torch if hasattr(pictures, "torch") else pictures
        pictures = pictures[..., :3].cpu().numpy()
        for segments in self._outlines():
            pictures = draw_lines(pictures, self._project(segments), GOAL_COLOR)
        self.frames.append(tile(write_captions(pictures, self._captions) if self._captions else pictures))

    def _outlines(self) -> list[Any]:
        """Return line segments that commands show, in world coordinates, each of shape (num_envs, n, 2, 3)."""
        manager = getattr(self._env, "command_manager", None)
        if manager is None:
            return []
        terms = [manager.get_term(name) for name in manager.active_terms]
        return [term.outline() for term in terms if hasattr(term, "outline")]

    def _project(self, points: Any) -> np.ndarray:
        """Return the pixels of world points; NaN behind the camera."""
        from isaaclab.utils.math import quat_apply_inverse

        data = self._camera.data
        quat, position = data.quat_w_ros.torch[:, None, None], data.pos_w.torch[:, None, None]
        seen = quat_apply_inverse(quat.expand(*points.shape[:-1], 4), points - position)
        x, y, z = seen.unbind(dim=-1)
        matrix = data.intrinsic_matrices.torch
        pixels = [
            matrix[:, axis, axis, None, None] * value / z + matrix[:, axis, 2, None, None]
            for axis, value in enumerate((x, y))
        ]
        pixels = [value.where(z > 0.05, float("nan")) for value in pixels]
        return np.stack([value.cpu().numpy() for value in pixels], axis=-1)

    def _target(self) -> Any:
        origins = self._env.scene.env_origins
        if self._view.follow is None:
            return origins.clone()
        position = self._env.scene[self._view.follow].data.root_pos_w.torch.clone()
        position[:, 2] = origins[:, 2]
        return position


@dataclass(frozen=True)
class PlainView:
    """A view of a task that names none, such as Isaac Lab's own: from the side of every environment's origin."""

    eye: tuple[float, float, float] = (2.5, 2.5, 2.0)
    """Where the camera stands, from the target [m]."""
    target: tuple[float, float, float] = (0.0, 0.0, 0.5)
    """What it looks at [m]."""
    follow: str | None = None
    """Name of what it follows."""


def views_of(env_cfg: Any) -> dict[str, Any]:
    """Return the views of a task by their names; at least one."""
    return getattr(env_cfg, "video_views", None) or {"plain": PlainView()}


def find_view(env_cfg: Any, name: str | None) -> Any:
    """Return a view of a task by its name; None is the first."""
    views = views_of(env_cfg)
    if name is not None and name not in views:
        raise UserError(f"this task has no view '{name}'; it has: {', '.join(views)}")
    return views[name or next(iter(views))]


def draw_lines(pictures: np.ndarray, lines: np.ndarray, color: Color) -> np.ndarray:
    """Return pictures of shape (n, height, width, 3) with lines of shape (n, m, 2, 2), in pixels, drawn on them."""
    from PIL import Image, ImageDraw

    drawn = []
    for picture, segments in zip(pictures, lines, strict=True):
        image = Image.fromarray(picture)
        pen = ImageDraw.Draw(image)
        for segment in segments[np.isfinite(segments).all(axis=(1, 2))]:
            pen.line([tuple(point) for point in segment.tolist()], fill=color, width=2)
        drawn.append(np.asarray(image))
    return np.stack(drawn)


def write_captions(pictures: np.ndarray, captions: Sequence[tuple[str, Color]]) -> np.ndarray:
    """Return pictures of shape (n, height, width, 3), each with a bar of its colour and its text at the top."""
    from PIL import Image, ImageDraw, ImageFont

    written = []
    font = ImageFont.load_default(size=20)
    for picture, (text, color) in zip(pictures, captions, strict=True):
        image = Image.fromarray(picture)
        pen = ImageDraw.Draw(image)
        pen.rectangle((0, 0, image.width, 8), fill=color)
        pen.text((10, 14), text, fill=(255, 255, 255), font=font, stroke_width=2, stroke_fill=(0, 0, 0))
        written.append(np.asarray(image))
    return np.stack(written)


def tile(pictures: np.ndarray) -> np.ndarray:
    """Arrange pictures of shape (n, height, width, 3) in a grid that is about as wide as high."""
    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    padded = np.zeros((rows * columns, *pictures.shape[1:]), dtype=np.uint8)
    padded[: len(pictures)] = pictures
    height, width = pictures.shape[1:3]
    return padded.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)


def write_video(frames: list[np.ndarray], stem: Path, fps: float) -> Path:
    """Write an mp4 if the ``video`` extra is installed, else a gif at half the frame rate; return its path."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("imageio_ffmpeg"):
        return _write_mp4(frames, stem.with_suffix(".mp4"), fps)
    return write_gif(frames[::2], stem.with_suffix(".gif"), fps / 2)


def write_gif(frames: list[np.ndarray], path: Path, fps: float) -> Path:
    """Write an animated gif with Pillow."""
    from PIL import Image

    images = [Image.fromarray(frame).quantize(128) for frame in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / fps), loop=0, optimize=True)
    return path


def _write_mp4(frames: list[np.ndarray], path: Path, fps: float) -> Path:
    import imageio_ffmpeg

    height, width = frames[0].shape[:2]
    writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=fps, quality=7, macro_block_size=2)
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
    return path
