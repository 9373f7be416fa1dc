"""Train agents x settings x seeds x tasks, and put what they reach into one table and one figure."""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.base.processes import end_with_parent
from epo_lab.configs.sweep import expand
from epo_lab.evaluation.episodes import Episodes, roll_out
from epo_lab.report.comparison import Score, merge, plot, read_scores, summarize, write_scores
from epo_lab.runner.console import Console
from epo_lab.runner.curves import ITERATION, read_curves
from epo_lab.runner.folder import find_runs, log_root, output_file

from .backends.base import make_backend
from .policy import find_trained, load_policy
from .quiet import into_file, quiet
from .seeds import read_seeds
from .tasks import find_task, score_name

CURVE_POINTS = 20
STOPPED = 143
"""Exit code after SIGTERM, as that of train."""
STEPS, MASTER = "Perf/total_steps", "Master/fitness"
HANDED_ON = (
    "profile",
    "experiment",
    "device",
    "logger",
    "log_project_name",
    "wandb_entity",
    "wandb_group",
    "wandb_tags",
    "wandb_mode",
)
"""Options of the command line that every run gets."""
LOOK = 2.0
"""Seconds between two looks at the runs that go on."""
LONGEST_POINT = 80
"""Characters of the settings that stand in a run's name."""
_PROGRESS = re.compile(r"^\s*(\d+/\d+) \(")


@dataclass(frozen=True)
class Job:
    """One run of the comparison."""

    task: str
    agent: str
    seed: int
    max_iterations: int | None
    num_envs: int | None
    point: str
    """Names and values of the settings of this run; empty if the agents are compared as they are."""
    rest: tuple[str, ...]
    config_dir: Path
    options: tuple[tuple[str, Any], ...] = ()
    """More options of the train command, by name."""

    @property
    def task_id(self) -> str:
        """Id of the task, without the module that registers it."""
        return self.task.rpartition(":")[2]

    @property
    def experiment(self) -> str:
        """Folder of the runs of a task, below ``logs/rsl_rl``."""
        return f"compare/{self.task_id}"

    @property
    def log(self) -> Path:
        """File that takes what the run prints."""
        return log_root(self.experiment) / f"{self.run_name}.log"

    @property
    def run_name(self) -> str:
        """Suffix of the run folder, by which a broken comparison finds it again."""
        point = re.sub(r"[^\w.=+-]", "_", self.point)
        if len(point) > LONGEST_POINT:
            # what is cut off still tells two runs apart
            point = f"{point[:LONGEST_POINT]}-{zlib.crc32(self.point.encode()):08x}"
        return "-".join([self.agent, *([point] if point else []), str(self.seed)])

    @property
    def label(self) -> str:
        """Name of the agent in the table and the figure."""
        return f"{self.agent} {self.point}".strip()

    def arguments(self, **more: object) -> argparse.Namespace:
        """Return the options of the train or play command."""
        options: dict[str, Any] = dict.fromkeys((*HANDED_ON, "viz", "checkpoint")) | dict(self.options)
        options |= {"task": self.task, "agent": self.agent, "seed": self.seed, "num_envs": self.num_envs}
        options |= {"experiment_name": self.experiment, "run_name": self.run_name, "verbose": True, **more}
        return argparse.Namespace(**options)


def compare(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Run the comparison and return the exit code; what is finished already is not done again."""
    output = Path(args.output).expanduser()
    table, figure = output_file(output / "scores.csv"), output_file(output / "scores.png")
    agents, tasks = args.agents.split(","), args.tasks.split(",")
    options = {name: getattr(args, name) for name in HANDED_ON}
    if options["logger"] == "wandb":
        # the runs of a comparison stand together
        options["wandb_group"] = options["wandb_group"] or output.resolve().name
    handed_on = tuple(options.items())
    jobs = [
        Job(task, agent, seed, args.max_iterations, args.num_envs, point, tuple(settings), config_dir, handed_on)
        for task in tasks
        for agent in agents
        for point, settings in expand(rest)
        for seed in read_seeds(args.seeds)
    ]
    with quiet(f"Checking {len(jobs)} runs", verbose=args.verbose):
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
            f"{done}/{len(jobs)} {job.task_id} {job.label} seed {job.seed}: {result[-1].score:.3f}"
            f" | {elapsed:.0f} s, about {elapsed / done * (len(jobs) - done):.0f} s to go",
            flush=True,
        )
    ordered = [score for job in jobs for score in scores[job]]
    if args.add and table.exists():
        ordered = merge(read_scores(table), ordered)
    write_scores(table, ordered)
    plot(ordered, figure)
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
        print(f"{done}/{len(mine)} {job.task_id} {job.label} seed {job.seed}: trained", flush=True)
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
        workers,
        mp_context=get_context("spawn"),
        initializer=end_with_parent,
        max_tasks_per_child=1 if fresh else None,
    ) as pool:
        futures = {pool.submit(function, job): job for job in jobs}
        try:
            for future in _as_they_end(futures):
                yield futures[future], future.result()
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if stopped and isinstance(error, BrokenProcessPool):
                raise SystemExit(STOPPED) from None
            raise
        finally:
            signal.signal(signal.SIGTERM, previous)


def _as_they_end(futures: dict[Future, Job]) -> Iterator[Future]:
    """Yield futures in the order in which they end, and meanwhile show how far the runs are."""
    waiting, console = set(futures), Console(interval=30.0, patient=True)
    while waiting:
        ended, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
        yield from ended
        if not ended:
            going = [text for future in waiting if future.running() and (text := progress(futures[future]))]
            console.update(len(futures) - len(waiting), len(futures), {"now": ", ".join(going) or "starting"})


def progress(job: Job) -> str:
    """Return how far a run is, as the last line of its log says; nothing if it says nothing yet."""
    lines = job.log.read_text(errors="replace").splitlines() if job.log.is_file() else []
    found = next((match[1] for line in reversed(lines) if (match := _PROGRESS.match(line))), None)
    return f"{job.label} seed {job.seed} {found}" if found else ""


def train_job(job: Job) -> None:
    """Train, or go on with, one run."""
    from .train import train

    with into_file(job.log):
        options = job.arguments(max_iterations=job.max_iterations, resume=False, auto_resume=True)
        try:
            code = train(options, list(job.rest), job.config_dir)
        except SystemExit as ending:
            # what was wrong stands in one line of the log, and shall be said where the user looks
            said = job.log.read_text(errors="replace").strip().splitlines()
            raise UserError(f"{job.run_name}: {said[-1] if said else f'ended with code {ending.code}'}") from None
    if code == STOPPED:
        # the pool must not hand this process the next job
        os._exit(code)
    if code != 0:
        raise RuntimeError(f"{job.run_name} ended with code {code}; see {job.log}")


def run_job(job: Job) -> list[Score]:
    """Train, or go on with, one run and return its curve and its final score."""
    train_job(job)
    folder = find_runs(log_root(job.experiment), job.task_id, job.run_name)[-1]
    with into_file(job.log):
        final = _final_score(job, folder)
    return [*_curve(job, folder), final]


def _curve(job: Job, folder: Path) -> list[Score]:
    """Return evenly spaced points of the master's score while it trained."""
    _, rows = read_curves(folder / "curves.csv")
    total = len(rows)
    wanted = {round((number + 1) * total / CURVE_POINTS) - 1 for number in range(CURVE_POINTS)}
    return [
        Score(job.task_id, job.label, job.seed, "curve", int(float(row[STEPS])), float(row[MASTER]))
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
    return Score(job.task_id, job.label, job.seed, "final", int(float(rows[-1][STEPS])), value)
