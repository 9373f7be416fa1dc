"""Play a checkpoint: watch it, film it, and print what it reaches."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from epo_lab.analysis.evaluation import table
from epo_lab.errors import exit_on_user_error
from epo_lab.runs.folder import check_writable

from . import video
from .episodes import Episodes, roll_out
from .evaluate import summarize
from .policy import Policy, Trained, find_trained, load_policy
from .quiet import quiet
from .tasks import score_name

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
        trained = find_trained(args.checkpoint, args, rest, config_dir)
    backend, checkpoint = trained.backend, trained.checkpoint
    if args.video:
        check_writable(checkpoint.parent / "videos")
        backend.add_camera(args.view)
    print(
        f"{backend.spec.id}, {checkpoint} (iteration {trained.iteration}), {backend.num_envs} envs on {backend.device}"
    )

    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=args.verbose):
            env = stack.enter_context(backend.open())
            stack.enter_context(exit_on_user_error("play"))
            policy = load_policy(env, trained)
            if args.export:
                policy.export(checkpoint.parent / "exported")
        recorder = video.Recorder(env.unwrapped, args.view) if args.video else None
        print(_report(trained, _run(env, policy, args, recorder, score_name(backend.spec)), env))
        if recorder is not None:
            stem = checkpoint.parent / "videos" / checkpoint.stem
            print(f"Video: {video.write_video(recorder.frames, stem, fps=1.0 / env.unwrapped.step_dt)}")
        if args.export:
            print(f"Exported: {checkpoint.parent / 'exported'}/policy.pt and policy.onnx")
    return 0


def _run(env: Any, policy: Policy, args: argparse.Namespace, recorder: video.Recorder | None, metric: str) -> Episodes:
    """Step until there are enough episodes, the video is long enough, or the user has seen enough."""
    episodes = Episodes(env.num_envs, args.episodes, metric=metric)
    watching = args.viz is not None
    begin = time.monotonic()
    with suppress(KeyboardInterrupt):
        for steps, _ in enumerate(roll_out(env, policy, episodes), start=1):
            if recorder is not None and steps <= args.video_length:
                recorder.take()
            filmed = recorder is None or steps >= args.video_length
            if filmed and not watching and (episodes.complete or (recorder is not None and not args.full_episodes)):
                break
            if watching:
                time.sleep(max(0.0, env.unwrapped.step_dt - (time.monotonic() - begin)))
                begin = time.monotonic()
    return episodes


def _report(trained: Trained, episodes: Episodes, env: Any) -> str:
    """Return what the episodes reached; ``scripts/evaluate.py`` compares, this is a glance."""
    if not episodes.list:
        return "No episode ended."
    seeds = [trained.backend.settings["seed"]]
    lines = [table(summarize(trained, episodes.list, episodes.metric, env.num_envs, seeds))]
    lines += [f"{tag:<17} {value:.4g}" for tag, value in episodes.logged.items()]
    return "\n".join(lines)
