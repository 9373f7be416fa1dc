"""Measure what our interface costs on top of EnvPool's own: steps a second of both, in turns within one run."""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
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
    print("task | EnvPool steps/s | ours steps/s | share: median, least, most")
    slow = False
    for name in tasks:
        rows = measure(name, args.num_envs, threads, args.steps, args.repeats)
        raw, ours = (statistics.median(column) for column in zip(*rows, strict=True))
        shares = [row[1] / row[0] for row in rows]
        share = statistics.median(shares)
        slow |= share < LEAST
        print(f"{name} | {raw:,.0f} | {ours:,.0f} | {share:.2f}, {min(shares):.2f}, {max(shares):.2f}", flush=True)
    cores = f"{threads} threads, {os.cpu_count()} cores"
    print(f"{args.num_envs} envs, {cores}, {args.repeats} pairs of {args.steps} steps, {date.today()}")
    return int(slow)


def measure(name: str, num_envs: int, threads: int, steps: int, repeats: int) -> list[tuple[float, float]]:
    """Return pairs of environment steps a second: EnvPool's own vector, and ours, with the same actions."""
    env = EnvPoolEnv(EnvPoolCfg(name, num_envs, 0, "cpu", threads))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        pool = load_envpool().make_gymnasium(name, num_envs=num_envs, seed=list(range(num_envs)), num_threads=threads)
        pool.reset()
    actions = torch.rand(num_envs, env.num_actions, generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    scaled = env.scale_actions(actions.numpy()).copy()

    def rate(step: Callable[[], object]) -> float:
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        return num_envs * steps / (time.perf_counter() - begin)

    with torch.inference_mode():
        rate(lambda: pool.step(scaled))
        rate(lambda: env.step(actions))
        return [(rate(lambda: pool.step(scaled)), rate(lambda: env.step(actions))) for _ in range(repeats)]
