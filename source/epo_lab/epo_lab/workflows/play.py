"""Play a checkpoint: watch it, film it, and print what it reaches."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from epo_lab.errors import exit_on_user_error
from epo_lab.runs.checkpoint import LATEST, find_checkpoint, read_checkpoint
from epo_lab.runs.folder import check_writable, log_root

from . import video
from .backend import Backend, make_backend
from .episodes import Episodes
from .quiet import quiet
from .tasks import find_task

VIDEO_ENVS = 4


def play(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Play and return the exit code.

    Without a viewer every environment plays ``args.episodes`` episodes; with one it goes on until Ctrl-C.

    Args:
        args: Options of ``scripts/play.py``.
        rest: What that script did not understand: launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    if args.video and args.num_envs is None:
        args.num_envs = VIDEO_ENVS
    with quiet("Loading the task", verbose=args.verbose):
        backend = make_backend(find_task(args.task))
        backend.resolve(args, rest, config_dir, play_mode=not args.train_env_cfg)
    root = log_root(backend.settings["experiment_name"])
    checkpoint = find_checkpoint(args.checkpoint or LATEST, root=root, task=backend.spec.id, run_name=args.run_name)
    iteration = read_checkpoint(checkpoint)["iter"]
    if args.video:
        check_writable(checkpoint.parent / "videos")
        backend.add_camera(args.view)
    print(f"{backend.spec.id}, {checkpoint} (iteration {iteration}), {backend.num_envs} envs on {backend.device}")

    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=args.verbose):
            env = stack.enter_context(backend.open())
            stack.enter_context(exit_on_user_error("play"))
            policy = load_policy(env, backend, checkpoint, export=args.export)
        recorder = video.Recorder(env.unwrapped, args.view) if args.video else None
        print(_run(env, policy, args, recorder).report(int(env.max_episode_length)))
        if recorder is not None:
            stem = checkpoint.parent / "videos" / checkpoint.stem
            print(f"Video: {video.write_video(recorder.frames, stem, fps=1.0 / env.unwrapped.step_dt)}")
        if args.export:
            print(f"Exported: {_export_folder(checkpoint)}/policy.pt and policy.onnx")
    return 0


def load_policy(env: Any, backend: Backend, checkpoint: Path, *, export: bool = False) -> Any:
    """Return the master of a checkpoint, for plain observations, and export it if asked to."""
    from epo_lab.runners.epo_runner import EpoRunner

    device = backend.settings["device"]
    runner = EpoRunner(env, backend.settings, log_dir=None, device=device)
    runner.load(str(checkpoint), load_cfg={"actor": True}, map_location=device)
    if export:
        runner.export_policy_to_jit(str(_export_folder(checkpoint)))
        runner.export_policy_to_onnx(str(_export_folder(checkpoint)))
    return runner.get_inference_policy(device=env.device)


def _export_folder(checkpoint: Path) -> Path:
    return checkpoint.parent / "exported"


def _run(env: Any, policy: Any, args: argparse.Namespace, recorder: video.Recorder | None) -> Episodes:
    """Step until there are enough episodes, the video is long enough, or the user has seen enough."""
    import torch

    episodes = Episodes(env.num_envs, wanted=args.episodes)
    watching = args.viz is not None
    obs = env.get_observations()
    steps = 0
    with suppress(KeyboardInterrupt), torch.inference_mode():
        while True:
            begin = time.monotonic()
            obs, rewards, dones, extras = env.step(policy(obs))
            policy.reset(dones)
            episodes.add(rewards, dones, extras)
            steps += 1
            if recorder is not None and steps <= args.video_length:
                recorder.take()
            filmed = recorder is None or steps >= args.video_length
            if filmed and not watching and (episodes.complete or (recorder is not None and not args.full_episodes)):
                break
            if watching:
                time.sleep(max(0.0, env.unwrapped.step_dt - (time.monotonic() - begin)))
    return episodes
