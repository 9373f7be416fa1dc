"""Measure what our interface costs on top of EnvPool's own: steps a second of both, in turns within one run."""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import torch

from epo_lab.base.processes import own_cores
from epo_lab.commands.tasks import find_task
from epo_lab.envpool.env import EnvPoolCfg, EnvPoolEnv
from epo_lab.envpool.tasks import PREFIX, load_envpool

LEAST = 0.8
"""Share of EnvPool's own speed that we accept on tasks with physics."""


def benchmark_envpool(args: argparse.Namespace) -> int:
    """Print a row a task; return 1 if one is slower than accepted."""
    tasks = [find_task(task).id.removeprefix(PREFIX) for task in args.task.split(",")]
    threads = min(args.num_threads or own_cores(), args.num_envs)
    print("task | EnvPool steps/s | ours steps/s | share by the clock: median, quartiles | by processor time: the same")
    slow = False
    for name in tasks:
        pairs = measure(name, args.num_envs, threads, args.steps, args.repeats)
        raw, ours = (statistics.median(column) for column in zip(*(pair.rates for pair in pairs), strict=True))
        by_clock, by_processor = _spread([p.share for p in pairs]), _spread([p.processor_share for p in pairs])
        slow |= by_processor[0] < LEAST
        cells = [", ".join(f"{value:.2f}" for value in values) for values in (by_clock, by_processor)]
        print(f"{name} | {raw:,.0f} | {ours:,.0f} | {cells[0]} | {cells[1]}", flush=True)
    cores = f"{threads} threads, {os.cpu_count()} cores"
    print(f"{args.num_envs} envs, {cores}, {args.repeats} pairs of {args.steps} steps, {date.today()}")
    return int(slow)


@dataclass(frozen=True)
class Pair:
    """EnvPool's own vector and ours, one after the other."""

    rates: tuple[float, float]
    """Environment steps a second by the clock."""
    seconds: tuple[float, float]
    """Processor time of all threads [s], which others on the machine do not change."""

    @property
    def share(self) -> float:
        """Our speed as a share of EnvPool's."""
        return self.rates[1] / self.rates[0]

    @property
    def processor_share(self) -> float:
        """The same by processor time."""
        return self.seconds[0] / self.seconds[1]


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def measure(name: str, num_envs: int, threads: int, steps: int, repeats: int) -> list[Pair]:
    """Step both vectors in turns with the same actions."""
    env = EnvPoolEnv(EnvPoolCfg(name, num_envs, 0, "cpu", threads))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        pool = load_envpool().make_gymnasium(name, num_envs=num_envs, seed=list(range(num_envs)), num_threads=threads)
        pool.reset()
    actions = torch.rand(num_envs, env.num_actions, generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    scaled = env.scale_actions(actions.numpy()).copy()

    def time_steps(step: Callable[[], object]) -> tuple[float, float]:
        begin, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        return num_envs * steps / (time.perf_counter() - begin), time.process_time() - processor

    pairs = []
    with torch.inference_mode():
        for _ in range(repeats + 1):
            raw, ours = time_steps(lambda: pool.step(scaled)), time_steps(lambda: env.step(actions))
            pairs.append(Pair((raw[0], ours[0]), (raw[1], ours[1])))
    # the first pair warms up
    return pairs[1:]
