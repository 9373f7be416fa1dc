"""Play a checkpoint: watch it, film it, and print what it reaches."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.evaluation.episodes import Episodes, roll_out
from epo_lab.evaluation.scores import table
from epo_lab.runner.folder import LOCK, WANDB_ID, check_writable

from . import video, viewer
from .evaluate import summarize
from .export import FOLDER
from .policy import Policy, Trained, choose_agents, find_trained, load_policy
from .quiet import loading, quiet
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
    with quiet(loading(args.task), verbose=args.verbose):
        trained = find_trained(args.checkpoint, args, rest, config_dir)
    backend, checkpoint = trained.backend, trained.checkpoint
    players = choose_agents(args.members, trained)
    if args.num_envs is None and (args.video or args.viz):
        backend.resize(len(players) if len(players) > 1 else VIDEO_ENVS)
    elif len(players) > backend.num_envs:
        raise UserError(
            f"{len(players)} members need as many environments: --num_envs {len(players)} or fewer --members"
        )
    if args.video:
        check_writable(checkpoint.parent / "videos")
        backend.add_camera(args.view)
    print(
        f"{backend.spec.id}, {checkpoint} (iteration {trained.iteration}), {backend.num_envs} envs on {backend.device}"
    )

    with ExitStack() as stack:
        with quiet(backend.starting, verbose=args.verbose):
            env = stack.enter_context(backend.open())
            stack.enter_context(exit_on_user_error("play"))
            policy = load_policy(env, trained)
            exported = policy.export(checkpoint.parent / FOLDER, players, backend.spec.id) if args.export else []
        # agents that are watched keep to their environments; others go round, which is fairer
        seen = bool(args.video or args.viz)
        episodes = Episodes(env.num_envs, args.episodes, players, score_name(backend.spec), rotate=not seen)
        shown = _Shown(env.unwrapped, trained, episodes.agents.tolist(), args) if seen else None
        _run(env, policy, args, episodes, shown)
        print(_report(trained, episodes, env))
        recorder = None if shown is None else shown.recorder
        if recorder is not None:
            stem = checkpoint.parent / "videos" / checkpoint.stem
            film = video.write_video(recorder.frames, stem, fps=1.0 / env.unwrapped.step_dt)
            print(f"Video: {film}{_sent(checkpoint.parent, film)}")
        if exported:
            print(f"Exported: {', '.join(exported)} in {checkpoint.parent / FOLDER}")
    return 0


def _sent(folder: Path, film: Path) -> str:
    """Send a film to the W&B run of a run folder, if it has one that has ended, and return what to say of it."""
    if not (folder / WANDB_ID).is_file() or (folder / LOCK).exists():
        # a run that goes on sends what it finds in its folder itself
        return ""
    from epo_lab.runner.wandb_writer import send_film

    try:
        return f", sent to the W&B run {send_film(folder, film)}"
    except UserError as error:
        # the film is there, and that is what was asked for
        return f" ({error})"


class _Shown:
    """What is to be seen: a film, labels in the web viewer, and a list of who plays where."""

    def __init__(self, env: Any, trained: Trained, agents: list[int], args: argparse.Namespace) -> None:
        fitness = viewer.fitness_of(trained.checkpoint.parent, trained.iteration)
        texts = viewer.label_texts(agents, fitness)
        captions = list(zip(texts, viewer.fitness_colors(agents, fitness), strict=True))
        several = trained.num_agents > 1
        self.recorder = video.Recorder(env, args.view, captions if several else ()) if args.video else None
        self.labels = viewer.Labels(env, agents, fitness) if several and viewer.wants(args.viz, "viser") else None
        if several and args.viz:
            print("\n".join(f"environment {number}: {text}" for number, text in enumerate(texts)))
        if viewer.wants(args.viz, "viser"):
            print(f"Watch: {viewer.url(args.host, args.port)} (Ctrl-C ends)", flush=True)

    def step(self, number: int, args: argparse.Namespace) -> None:
        """Take a picture, as long as the film goes on, and move the labels."""
        if self.recorder is not None and number <= args.video_length:
            self.recorder.take()
        if self.labels is not None:
            self.labels.update()


def _run(env: Any, policy: Policy, args: argparse.Namespace, episodes: Episodes, shown: _Shown | None) -> None:
    """Step until there are enough episodes, the video is long enough, or the user has seen enough."""
    begin = time.monotonic()
    film_only = args.video and not args.full_episodes
    most_steps = args.video_length if film_only else episodes.most_steps(env.max_episode_length)
    rolling = roll_out(env, policy, episodes, most_steps if args.viz is None else None)
    with suppress(KeyboardInterrupt):
        for steps, _ in enumerate(rolling, start=1):
            if shown is not None:
                shown.step(steps, args)
            if args.viz is not None:
                time.sleep(max(0.0, env.unwrapped.step_dt - (time.monotonic() - begin)))
                begin = time.monotonic()
                continue
            filmed = not args.video or steps >= args.video_length
            if filmed and (episodes.complete or film_only):
                break


def _report(trained: Trained, episodes: Episodes, env: Any) -> str:
    """Return what the episodes reached; ``scripts/evaluate.py`` compares, this is a glance."""
    if not episodes.list:
        return "No episode ended."
    seeds = [trained.backend.settings["seed"]]
    lines = [table(summarize(trained, episodes.list, episodes.metric, env.num_envs, seeds))]
    lines += [f"{tag:<17} {value:.4g}" for tag, value in episodes.logged.items()]
    return "\n".join(lines)
