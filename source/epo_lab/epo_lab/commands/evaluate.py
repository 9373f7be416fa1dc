"""Score checkpoints by the fixed protocol of their task."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.base.processes import end_with_parent
from epo_lab.evaluation.episodes import Episode, Episodes, roll_out
from epo_lab.evaluation.scores import FILE_NAME, Evaluation, published_scores, table, write_evaluations
from epo_lab.runner.folder import output_file

from .policy import Trained, choose_agents, find_trained, load_policy
from .quiet import loading, quiet
from .seeds import read_seeds
from .tasks import score_name

ENGINE = "physics="


def evaluate(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Score all checkpoints on all engines, print one table, write it as JSON and return the exit code.

    Args:
        args: Options of ``scripts/evaluate.py``.
        rest: What that script did not understand: launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    read_seeds(args.seeds)
    engines = args.physics.split(",") if args.physics else [None]
    if args.physics and any(token.startswith(ENGINE) for token in rest):
        raise UserError(f"--physics and {ENGINE} name engines twice: leave one out")
    with quiet(loading(args.task), verbose=args.verbose):
        # every engine and every checkpoint is looked at before the first simulation starts
        found = [_find(args, rest, config_dir, engine) for engine in engines]
    task = found[0][0].backend.spec.id
    output = output_file(Path(args.output) if args.output else found[0][0].checkpoint.parent / FILE_NAME)

    if len(engines) == 1:
        evaluations = _evaluate(found[0], args)
    else:
        evaluations = []
        # one simulation a process
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=end_with_parent, max_tasks_per_child=1
        ) as pool:
            for engine in engines:
                evaluations += pool.submit(evaluate_on, args, rest, config_dir, engine).result()
    published = published_scores(task)
    print(f"\n{task}, deterministic policy; spread: standard deviation of episodes; interval: of the mean, bootstrap\n")
    print(table(evaluations, published))
    broken = sum({(e.checkpoint, e.engine): e.nonfinite for e in evaluations}.values())
    if broken:
        print(f"\n{broken} episodes ended because of numbers that were not finite")
    note = found[0][0].backend.note
    if note:
        print(f"\nOther than published: {note}")
    write_evaluations(output, task, evaluations, published, shlex.join(sys.orig_argv), note)
    print(f"\nWritten: {output}")
    return 0


def evaluate_on(args: argparse.Namespace, rest: list[str], config_dir: Path, engine: str | None) -> list[Evaluation]:
    """Score all checkpoints on one engine, in a process that has loaded nothing yet."""
    with quiet(f"Loading the task for {engine}", verbose=args.verbose):
        found = _find(args, rest, config_dir, engine)
    return _evaluate(found, args)


def _evaluate(found: list[Trained], args: argparse.Namespace) -> list[Evaluation]:
    """Open the task of the first checkpoint and score all of them in it."""
    backend, seeds = found[0].backend, read_seeds(args.seeds)
    evaluations = []
    with ExitStack() as stack:
        with quiet(backend.starting, verbose=args.verbose):
            env = stack.enter_context(backend.open())
            # caught here, because Isaac Lab's launcher prints a traceback of what passes through it
            stack.enter_context(exit_on_user_error("evaluate"))
        for trained in found:
            evaluations += _score(env, trained, choose_agents(args.members, trained), args.episodes, seeds)
    return evaluations


def _find(args: argparse.Namespace, rest: list[str], config_dir: Path, engine: str | None) -> list[Trained]:
    """Resolve all checkpoints on an engine."""
    tokens = rest if engine is None else [*rest, f"{ENGINE}{engine}"]
    found = [find_trained(selector, args, tokens, config_dir) for selector in args.checkpoint or [None]]
    tasks = {trained.backend.spec.id for trained in found}
    for trained in found:
        choose_agents(args.members, trained)
    if len(tasks) > 1:
        raise UserError(f"the checkpoints are of different tasks ({', '.join(sorted(tasks))}): evaluate one at a time")
    return found


def _score(env: Any, trained: Trained, players: list[int], wanted: int, seeds: list[int]) -> list[Evaluation]:
    """Return what every agent of a checkpoint reaches."""
    begin = time.monotonic()
    policy = load_policy(env, trained)
    name, finished, nonfinite = score_name(trained.backend.spec), [], 0
    for seed in seeds:
        trained.backend.begin(env, seed)
        episodes = Episodes(env.num_envs, wanted, players, name)
        for guarded in roll_out(env, policy, episodes, episodes.most_steps(env.max_episode_length)):
            if episodes.complete:
                nonfinite += guarded.reset_count
                break
        finished += episodes.list
        name = episodes.metric
    print(f"{trained.name} (iteration {trained.iteration}): {len(finished)} episodes, {time.monotonic() - begin:.0f} s")
    return summarize(trained, finished, name, env.num_envs, seeds, nonfinite)


def summarize(
    trained: Trained, episodes: list[Episode], metric: str, num_envs: int, seeds: list[int], nonfinite: int = 0
) -> list[Evaluation]:
    """Return what every agent that played has reached."""
    evaluations = []
    for agent in sorted({episode.agent for episode in episodes}):
        own = [episode for episode in episodes if episode.agent == agent]
        evaluations.append(
            Evaluation(
                policy=trained.name,
                checkpoint=str(trained.checkpoint),
                iteration=trained.iteration,
                agent=agent,
                num_agents=trained.num_agents,
                engine=trained.backend.engine,
                num_envs=num_envs,
                seeds=seeds,
                metric=metric,
                scores=[episode.score for episode in own],
                returns=[episode.ret for episode in own],
                lengths=[episode.length for episode in own],
                ended_early=_early(own),
                succeeded=_sum([episode.success for episode in own]),
                nonfinite=nonfinite,
            )
        )
    return evaluations


def _early(episodes: list[Episode]) -> int | None:
    return _sum([None if episode.timed_out is None else not episode.timed_out for episode in episodes])


def _sum(values: list[float | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known)) if known else None
