"""What several processes cost: weak scaling measured, and the time of the collectives computed for many GPUs."""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from epo_lab.base.errors import UserError

ROOT = Path(__file__).parents[2]
SPEED = "Perf/total_fps"
"""Column of ``curves.csv``: steps a second, over all processes."""


@dataclass(frozen=True)
class Link:
    """A connection between GPUs."""

    bandwidth: float
    """In one direction [bytes/s]."""
    latency: float
    """Of one message [s]."""


INSIDE = Link(450e9, 5e-6)
"""NVLink 4 of an H100: 900 GB/s in both directions together (NVIDIA's data sheet); the latency is our assumption."""
BETWEEN = Link(50e9, 10e-6)
"""InfiniBand NDR: 400 Gb/s a port (NVIDIA's data sheet of Quantum-2); the latency is our assumption."""
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
    return sum(min(ring_seconds(*step), tree_seconds(*step)) for step in steps)


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
    if args.task:
        one, two = (_speed(args, count) for count in (1, 2))
        speeds = f"{one:.0f} steps/s alone, {two:.0f} as two: {two / 2 / one:.3f}"
        print(f"{args.task}, {args.num_envs} envs a process: {speeds}")
    return 0


def _speed(args: argparse.Namespace, processes: int) -> float:
    """Return the median steps a second of a short run, its first iterations left out; one thread a process."""
    launch = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes)] if processes > 1 else []
    command = [sys.executable, *launch, str(ROOT / "scripts/train.py"), "--task", args.task, "--agent", "epo"]
    command += ["--num_envs", str(args.num_envs), "--max_iterations", str(args.iterations)]
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise UserError(f"training failed: {' '.join(result.stderr.split())[-300:]}")
        with next(Path(folder).glob("logs/rsl_rl/*/*/curves.csv")).open() as file:
            rows = list(csv.DictReader(file))
    return statistics.median(float(row[SPEED]) for row in rows[len(rows) // 4 :])
