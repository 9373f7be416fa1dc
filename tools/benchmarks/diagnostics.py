"""Measure the diagnostics: steps a second on one core, with actions that are there already."""

from __future__ import annotations

import argparse
import statistics
import time
from datetime import date

import torch
from rsl_rl.utils import resolve_callable

from epo_lab.diagnostics import TASKS

LEAST = 200_000
"""Steps a second that every diagnostic makes on one core."""


def benchmark_diagnostics(args: argparse.Namespace) -> int:
    """Print a row a diagnostic; return 1 if one is slower than promised, by processor time."""
    torch.set_num_threads(1)
    print("diagnostic | environments | steps/s by the clock | by processor time")
    slow = False
    for name, path in TASKS.items():
        rates = [measure(path, args.num_envs, args.steps) for _ in range(args.repeats)]
        by_clock, by_processor = (statistics.median(column) for column in zip(*rates, strict=True))
        slow |= by_processor < LEAST
        print(f"{name} | {args.num_envs} | {by_clock:,.0f} | {by_processor:,.0f}", flush=True)
    print(f"one thread, median of {args.repeats} times {args.steps} steps, {date.today()}")
    return int(slow)


def measure(path: str, num_envs: int, steps: int) -> tuple[float, float]:
    """Return steps a second of all environments together, by the clock and by the processor's time."""
    env = resolve_callable(path)(num_envs, "cpu", 0)
    actions = torch.randn(num_envs, env.num_actions)
    # as at the start of a run: some episodes end in every step
    env.episode_length_buf = torch.randint_like(env.episode_length_buf, high=env.horizon)
    with torch.inference_mode():
        env.step(actions)
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            env.step(actions)
        spent = time.perf_counter() - clock, time.process_time() - processor
    return steps * num_envs / spent[0], steps * num_envs / spent[1]
