"""What several processes cost: weak scaling measured, and the time of the collectives computed for many GPUs."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.commands.tasks import find_task

SPEED = "Perf/total_fps"
"""Column of ``curves.csv``: steps a second, over all processes."""
TOLD = "told.json"
"""Where a run of :func:`_train_on_one_core` notes what it sent."""


@dataclass(frozen=True)
class Link:
    """A connection between GPUs."""

    bandwidth: float
    """In one direction [bytes/s]."""
    latency: float
    """Of one message [s]."""


INSIDE = Link(450e9, 4e-6)
"""NVLink 4 of an H100: 900 GB/s in both directions together (NVIDIA's data sheet)."""
BETWEEN = Link(50e9, 14e-6)
"""InfiniBand NDR: 400 Gb/s a port (NVIDIA's manual of ConnectX-7)."""
START = 8.4e-6
"""What a collective takes besides [s]. This and the latencies are what NCCL's own model reckons with (baseLat and hwLat
of src/graph/tuning.cc, protocol Simple, tree)."""
GPUS_PER_NODE = 8


def ring_seconds(size: float, count: int, link: Link) -> float:
    """Return the time of a ring all-reduce: 2 (n - 1) messages of size / n each (Patarasuk and Yuan, 2009)."""
    return 0.0 if count < 2 else 2 * (count - 1) * (link.latency + size / count / link.bandwidth)


def tree_seconds(size: float, count: int, link: Link) -> float:
    """Return the time of an all-reduce over a double binary tree, whole messages pipelined (Sanders et al., 2009)."""
    return 0.0 if count < 2 else 2 * math.ceil(math.log2(count)) * link.latency + 2 * size / link.bandwidth


def all_reduce_seconds(size: float, gpus: int) -> float:
    """Return the time of an all-reduce: within the nodes, then between them, the quicker of ring and tree each time."""
    inside, nodes = min(gpus, GPUS_PER_NODE), math.ceil(gpus / GPUS_PER_NODE)
    steps = ((size, inside, INSIDE), (size / inside, nodes, BETWEEN))
    return START + sum(min(ring_seconds(*step), tree_seconds(*step)) for step in steps)


def gradient_bytes(num_parameters: int, epochs: int, mini_batches: int) -> int:
    """Return what an iteration reduces at least: a float32 gradient of all parameters for every mini-batch."""
    return 4 * num_parameters * epochs * mini_batches


def benchmark_scaling(args: argparse.Namespace) -> int:
    """Print the cost of the collectives for many GPUs and, if a task is named, weak scaling on this machine."""
    rounds = args.epochs * args.mini_batches
    size = 4 * args.parameters
    total = gradient_bytes(args.parameters, args.epochs, args.mini_batches)
    print(f"{args.parameters:,} parameters, {rounds} gradient steps: {total / 1e6:.1f} MB reduced an iteration")
    print("GPUs   all-reduce [ms]   an iteration [ms]   share of a 1 s iteration")
    for gpus in (2, 8, 64, 1000):
        seconds = all_reduce_seconds(size, gpus)
        print(f"{gpus:4}   {1e3 * seconds:15.3f}   {1e3 * rounds * seconds:17.1f}   {rounds * seconds:23.1%}")
    for task in args.task.split(",") if args.task else ():
        find_task(task)
    for task in args.task.split(",") if args.task else ():
        _measure(args, task)
    return 0


def _measure(args: argparse.Namespace, task: str) -> None:
    """Train a task in one and in two processes, again and again, and print how the speeds compare and what is sent."""
    runs: dict[int, list[tuple[float, dict[str, int]]]] = {1: [], 2: []}
    for repeat in range(args.repeats):
        # the order changes, so that a machine that grows warm or busy favours neither
        for processes in ((1, 2), (2, 1))[repeat % 2]:
            runs[processes].append(_run(args, task, processes))
    one, two = ([speed for speed, _ in runs[processes]] for processes in (1, 2))
    ratios = [both / 2 / alone for alone, both in zip(one, two, strict=True)]
    told = runs[2][-1][1]
    print(
        f"{task}, {args.num_envs} envs a process: {statistics.median(one):.0f} steps/s alone,"
        f" {statistics.median(two):.0f} as two; two over twice one, {args.repeats} pairs:"
        f" median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}; an iteration sends"
        f" {told['sent'] / 1e6:.3f} MB, by arithmetic {told['gradients'] / 1e6:.3f} MB of gradients ({date.today()})",
        flush=True,
    )


def _run(args: argparse.Namespace, task: str, processes: int) -> tuple[float, dict[str, int]]:
    """Return the median steps a second of a short run without its first iterations, and what it sent in one."""
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes)] if processes > 1 else []
    command = [sys.executable, *launch, __file__, "--task", task, "--agent", "epo"]
    command += ["--num_envs", str(args.num_envs), "--max_iterations", str(args.iterations)]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if result.returncode:
            raise UserError(f"training failed: {' '.join(result.stderr.split())[-300:]}")
        with next(Path(folder).glob("logs/rsl_rl/*/*/curves.csv")).open() as file:
            rows = list(csv.DictReader(file))
        told = json.loads(Path(folder, TOLD).read_text())
    return statistics.median(float(row[SPEED]) for row in rows[len(rows) // 4 :]), told


@contextmanager
def sent_bytes() -> Iterator[list[int]]:
    """Yield a list that gets the bytes of every tensor that is reduced or broadcast in the body."""
    from torch import distributed

    kept = {name: getattr(distributed, name) for name in ("all_reduce", "broadcast")}
    sizes: list[int] = []
    for name, function in kept.items():

        def counted(values, *args, function=function, **more):  # type: ignore[no-untyped-def]
            sizes.append(values.nbytes)
            return function(values, *args, **more)

        setattr(distributed, name, counted)
    try:
        yield sizes
    finally:
        for name, function in kept.items():
            setattr(distributed, name, function)


def gradients_of(algorithm: Any) -> int:
    """Return the bytes of all gradients of an iteration of PPO or a population of it."""
    parameters = {p for model in (algorithm.actor, algorithm.critic) for p in model.parameters()}
    number = sum(parameter.numel() for parameter in parameters)
    return gradient_bytes(number, algorithm.num_learning_epochs, algorithm.num_mini_batches)


def _train_on_one_core() -> int:
    """Train as the command does, on a core of this process's own, and note what an iteration sends."""
    cores, own = sorted(os.sched_getaffinity(0)), int(os.getenv("LOCAL_RANK", "0"))
    os.sched_setaffinity(0, {cores[own % len(cores)]})
    from epo_lab.cli.train import main
    from epo_lab.runner.runner import EpoRunner

    log = EpoRunner._log
    with sent_bytes() as sizes:

        def noted(runner: Any, *args: Any, **more: Any) -> None:
            """Note the last iteration; the first also sends the networks."""
            told = {"sent": sum(sizes), "gradients": gradients_of(runner.alg)}
            sizes.clear()
            if own == 0:
                Path(TOLD).write_text(json.dumps(told))
            log(runner, *args, **more)

        EpoRunner._log = noted  # type: ignore[method-assign]
        return main()


if __name__ == "__main__":
    sys.exit(_train_on_one_core())
