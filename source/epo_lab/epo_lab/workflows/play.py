"""Play a checkpoint: watch it, film it, and print what it reaches."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from epo_lab.cfg.profiles import default_profile, profile_overrides
from epo_lab.errors import UserError, exit_on_user_error
from epo_lab.runs.checkpoint import LATEST, find_checkpoint, read_checkpoint
from epo_lab.runs.folder import check_writable, log_root

from . import isaac, video
from .episodes import Episodes
from .quiet import quiet
from .tasks import agent_entry_point, find_task

VIDEO_ENVS = 4


def play(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Play and return the exit code.

    Without a viewer every environment plays ``args.episodes`` episodes; with one it goes on until Ctrl-C.

    Args:
        args: Options of ``scripts/play.py``.
        rest: What that script did not understand: launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    with quiet("Loading the task", verbose=args.verbose):
        spec = find_task(args.task)
        agent_key = agent_entry_point(spec, args.agent)
        launcher, overrides = isaac.split_launcher_arguments(rest)
        overrides = isaac.engine_for_viewer(args.viz, overrides)
        base = profile_overrides(config_dir, args.profile or default_profile(), spec.id)
        play_mode = not args.train_env_cfg
        env_cfg, agent_cfg = isaac.resolve_configs(spec.id, agent_key, base, overrides, play_mode=play_mode)
    _apply_options(args, launcher, env_cfg, agent_cfg)
    root = log_root(args.experiment_name or agent_cfg.experiment_name)
    checkpoint = find_checkpoint(args.checkpoint or LATEST, root=root, task=spec.id, run_name=args.run_name)
    iteration = read_checkpoint(checkpoint)["iter"]
    if args.video:
        check_writable(checkpoint.parent / "videos")
        video.add_camera(env_cfg)
    print(f"{spec.id}, {checkpoint} (iteration {iteration}), {env_cfg.scene.num_envs} envs on {env_cfg.sim.device}")

    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=args.verbose):
            env = stack.enter_context(isaac.open_env(spec.id, env_cfg, launcher))
            stack.enter_context(exit_on_user_error("play"))
            wrapped = isaac.wrap_env(env, agent_cfg)
            policy = _load_policy(wrapped, agent_cfg, checkpoint)
        recorder = video.Recorder(env.unwrapped) if args.video else None
        episodes = _run(wrapped, policy, args, recorder)
        print(episodes.report(env.unwrapped.max_episode_length))
        if recorder is not None:
            stem = checkpoint.parent / "videos" / checkpoint.stem
            print(f"Video: {video.write_video(recorder.frames, stem, fps=1.0 / env.unwrapped.step_dt)}")
    return 0


def _apply_options(args: argparse.Namespace, launcher: argparse.Namespace, env_cfg: Any, agent_cfg: Any) -> None:
    if args.num_envs is not None:
        env_cfg.scene.num_envs = args.num_envs
    elif args.video:
        env_cfg.scene.num_envs = VIDEO_ENVS
    if env_cfg.scene.num_envs < 1:
        raise UserError(f"--num_envs {env_cfg.scene.num_envs}: at least one environment is needed")
    if args.device is not None:
        env_cfg.sim.device = agent_cfg.device = args.device
    isaac.check_device(env_cfg.sim.device)
    launcher.device, launcher.visualizer = env_cfg.sim.device, args.viz
    isaac.check_launch(env_cfg, launcher)
    env_cfg.seed = agent_cfg.seed if args.seed is None else args.seed


def _load_policy(env: Any, agent_cfg: Any, checkpoint: Path) -> Any:
    from epo_lab.runners.epo_runner import EpoRunner

    runner = EpoRunner(env, isaac.runner_settings(agent_cfg), log_dir=None, device=agent_cfg.device)
    runner.load(str(checkpoint), map_location=agent_cfg.device)
    return runner.get_inference_policy(device=env.device)


def _run(env: Any, policy: Any, args: argparse.Namespace, recorder: video.Recorder | None) -> Episodes:
    """Step until there are enough episodes, the video is long enough, or the user has seen enough."""
    import torch

    episodes = Episodes(env.num_envs, wanted=args.episodes)
    watching = args.viz is not None
    step_dt = env.unwrapped.step_dt
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
                time.sleep(max(0.0, step_dt - (time.monotonic() - begin)))
    return episodes
