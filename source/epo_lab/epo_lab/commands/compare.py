"""Train agents x settings x seeds x tasks, and put what they reach into one table and one figure."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.configs.sweep import expand
from epo_lab.evaluation.episodes import Episodes, roll_out
from epo_lab.report.comparison import Score, merge, plot, read_scores, summarize, write_scores
from epo_lab.runner.curves import ITERATION, read_curves
from epo_lab.runner.folder import check_writable, find_runs, log_root

from .backends.base import make_backend
from .policy import find_trained, load_policy
from .seeds import read_seeds
from .tasks import find_task, score_name

CURVE_POINTS = 20
STOPPED = 143
"""Exit code after SIGTERM, as that of train."""
STEPS, MASTER = "Perf/total_steps", "Master/fitness"


@dataclass(frozen=True)
class Job:
    """One run of the comparison."""

    task: str
    agent: str
    seed: int
    max_iterations: int | None
    num_envs: int | None
    point: str
    """Name of the swept settings of this run; empty if nothing is swept."""
    rest: tuple[str, ...]
    config_dir: Path

    @property
    def experiment(self) -> str:
        """Folder of the runs of a task, below ``logs/rsl_rl``."""
        return f"compare/{self.task}"

    @property
    def run_name(self) -> str:
        """Suffix of the run folder, by which a broken comparison finds it again."""
        return "-".join([self.agent, *([re.sub(r"[^\w.=+-]", "_", self.point)] if self.point else []), str(self.seed)])

    @property
    def label(self) -> str:
        """Name of the agent in the table and the figure."""
        return f"{self.agent} {self.point}".strip()

    def arguments(self, **more: object) -> argparse.Namespace:
        """Return the options of the train or play command."""
        options = dict.fromkeys(
            ("profile", "experiment", "device", "viz", "logger", "log_project_name", "checkpoint"), None
        )
        options |= {"task": self.task, "agent": self.agent, "seed": self.seed, "num_envs": self.num_envs}
        options |= {"experiment_name": self.experiment, "run_name": self.run_name, "verbose": True, **more}
        return argparse.Namespace(**options)


def compare(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Run the comparison and return the exit code; what is finished already is not done again."""
    output = Path(args.output)
    check_writable(output)
    agents, tasks = args.agents.split(","), args.tasks.split(",")
    jobs = [
        Job(task, agent, seed, args.max_iterations, args.num_envs, point, tuple(settings), config_dir)
        for task in tasks
        for agent in agents
        for point, settings in expand(rest)
        for seed in read_seeds(args.seeds)
    ]
    for job in jobs:
        _check(job)
    if args.part:
        return _train_part(jobs, args.part, args.jobs)
    scores: dict[Job, list[Score]] = {}
    begin = time.monotonic()
    for done, (job, result) in enumerate(_run_all(jobs, args.jobs, run_job), start=1):
        scores[job] = result
        elapsed = time.monotonic() - begin
        print(
            f"{done}/{len(jobs)} {job.task} {job.label} seed {job.seed}: {result[-1].score:.3f}"
            f" | {elapsed:.0f} s, about {elapsed / done * (len(jobs) - done):.0f} s to go",
            flush=True,
        )
    ordered = [score for job in jobs for score in scores[job]]
    if args.add and (output / "scores.csv").exists():
        ordered = merge(read_scores(output / "scores.csv"), ordered)
    write_scores(output / "scores.csv", ordered)
    plot(ordered, output / "scores.png")
    print(summarize(ordered))
    print(f"Written: {output}/scores.csv and scores.png")
    return 0


def _train_part(jobs: list[Job], part: str, workers: int) -> int:
    """Train every n-th job, as one of n machines; the table is made by the same command without a part."""
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    if match is None or not 1 <= (number := int(match[1])) <= (count := int(match[2])):
        raise UserError(f"--part {part}: give it as 1/4 to 4/4, for example")
    mine = jobs[number - 1 :: count]
    for done, (job, _) in enumerate(_run_all(mine, workers, train_job), start=1):
        print(f"{done}/{len(mine)} {job.task} {job.label} seed {job.seed}: trained", flush=True)
    print("This part is done; when all are, the same command without --part writes table and figure.")
    return 0


def _check(job: Job) -> None:
    """Find what is wrong with a job before anything runs."""
    backend = make_backend(find_task(job.task))
    backend.resolve(job.arguments(max_iterations=job.max_iterations), list(job.rest), job.config_dir)
    backend.check_training()


def _run_all(jobs: list[Job], workers: int, function: Callable[[Job], Any]) -> Iterator[tuple[Job, Any]]:
    """Yield jobs and what the function returns for them, in the order in which they end."""
    # one Isaac Lab application a process; other tasks need no such care
    fresh = not all(make_backend(find_task(task)).shares_process for task in {job.task for job in jobs})
    stopped = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        for child in active_children():
            child.terminate()

    previous = signal.signal(signal.SIGTERM, stop)
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), max_tasks_per_child=1 if fresh else None
    ) as pool:
        futures = {pool.submit(function, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if stopped and isinstance(error, BrokenProcessPool):
                raise SystemExit(STOPPED) from None
            raise
        finally:
            signal.signal(signal.SIGTERM, previous)


def train_job(job: Job) -> None:
    """Train, or go on with, one run."""
    from .train import train

    root = log_root(job.experiment)
    root.mkdir(parents=True, exist_ok=True)
    log = root / f"{job.run_name}.log"
    with log.open("a") as file, contextlib.redirect_stdout(file):
        options = job.arguments(max_iterations=job.max_iterations, resume=False, auto_resume=True)
        code = train(options, list(job.rest), job.config_dir)
    if code == STOPPED:
        # the pool must not hand this process the next job
        os._exit(code)
    if code != 0:
        raise RuntimeError(f"{job.run_name} ended with code {code}; see {log}")


def run_job(job: Job) -> list[Score]:
    """Train, or go on with, one run and return its curve and its final score."""
    train_job(job)
    folder = find_runs(log_root(job.experiment), job.task, job.run_name)[-1]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        final = _final_score(job, folder)
    return [*_curve(job, folder), final]


def _curve(job: Job, folder: Path) -> list[Score]:
    """Return evenly spaced points of the master's score while it trained."""
    _, rows = read_curves(folder / "curves.csv")
    total = len(rows)
    wanted = {round((number + 1) * total / CURVE_POINTS) - 1 for number in range(CURVE_POINTS)}
    return [
        Score(job.task, job.label, job.seed, "curve", int(float(row[STEPS])), float(row[MASTER]))
        for row in rows
        if int(row[ITERATION]) in wanted and row.get(MASTER)
    ]


def _final_score(job: Job, folder: Path) -> Score:
    """Return what the last checkpoint's master reaches in whole episodes, without exploration."""
    options = job.arguments(max_iterations=None)
    options.num_envs, options.seed = None, 10_000 + job.seed
    trained = find_trained(str(folder), options, list(job.rest), job.config_dir)
    with trained.backend.open() as env:
        policy = load_policy(env, trained)
        episodes = Episodes(env.num_envs, wanted=1, metric=score_name(trained.backend.spec))
        for _ in roll_out(env, policy, episodes):
            if episodes.complete:
                break
    _, rows = read_curves(folder / "curves.csv")
    value = statistics.fmean(episode.score for episode in episodes.list)
    return Score(job.task, job.label, job.seed, "final", int(float(rows[-1][STEPS])), value)
