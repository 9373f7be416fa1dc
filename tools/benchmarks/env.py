"""Measure how fast environments step, and which part of the time the physics engine takes."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.commands.backends import isaac
from epo_lab.commands.tasks import find_task

COLUMNS = ("task", "physics", "envs", "start s", "steps/s", "spread", "solve", "exchange", "outside", "MB")


def benchmark_envs(args: argparse.Namespace, overrides: list[str]) -> int:
    """Measure every combination in a process of its own, print a table and write it as JSON if asked to."""
    if args.one:
        size = int(args.num_envs)
        terms = args.terms.split(",") if args.terms else []
        clock = time.process_time if args.processor_time else time.perf_counter
        row = measure_env(args.task, args.physics, size, args.steps, args.repeats, overrides, terms, clock)
        print(json.dumps(row))
        return 0
    tasks, engines = args.task.split(","), args.physics.split(",")
    for task in tasks:
        find_task(task)
    if args.json and not Path(args.json).parent.is_dir():
        raise UserError(f"--json {args.json}: there is no folder {Path(args.json).parent}")
    rows = []
    print(" | ".join(COLUMNS))
    for task in tasks:
        for engine in engines:
            for num_envs in args.num_envs.split(","):
                row = _measure_in_child(task, engine, num_envs, args, overrides)
                rows.append(row)
                print(_format(row), flush=True)
    machine = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "date": str(date.today()),
    }
    for line in _memory_per_env(rows):
        print(line)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    if args.json:
        Path(args.json).write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")
    return 0


def measure_env(
    task: str,
    engine: str,
    num_envs: int,
    steps: int,
    repeats: int,
    overrides: list[str],
    terms: list[str] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Step a task with random actions and return what it took.

    The time of a step has three parts: the engine solves, the engine exchanges state and targets with its user (ovphysx
    copies them; Newton shares its arrays), and all the rest, which is outside the engine.

    Args:
        task: Id of the task.
        engine: Name of the physics preset.
        num_envs: Number of environments.
        steps: Policy steps of one measurement.
        repeats: Number of measurements; their median is reported.
        overrides: Settings of the task.
        terms: Observation and curriculum terms whose share of the time is reported too. Defaults to none.
        clock: Returns seconds. Defaults to the wall clock.
    """
    import torch

    begin = clock()
    with isaac.open_scene(task, [f"physics={engine}", *overrides], num_envs) as env:
        solving = _time_calls(env.sim, ["step"], env.device, clock)
        exchanging = _time_calls(*_exchange(engine), env.device, clock)
        in_terms = {name: _time_term(env, name, clock) for name in terms or []}
        actions = 2.0 * torch.rand(steps, num_envs, env.action_manager.total_action_dim, device=env.device) - 1.0
        for action in actions[:10]:
            env.step(action)
        started = clock() - begin
        rates, solved, exchanged = [], [], []
        shares: dict[str, list[float]] = {name: [] for name in in_terms}
        for _ in range(repeats):
            for total in (solving, exchanging, *in_terms.values()):
                total[0] = 0.0
            begin = clock()
            for action in actions:
                env.step(action)
            _synchronize(env.device)
            took = clock() - begin
            rates.append(steps * num_envs / took)
            solved.append(solving[0] / took)
            exchanged.append(exchanging[0] / took)
            for name, total in in_terms.items():
                shares[name].append(total[0] / took)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "task": task,
        "engine": engine,
        "num_envs": num_envs,
        "start_s": started,
        "steps_per_s": statistics.median(rates),
        "lowest": min(rates),
        "highest": max(rates),
        "solve_share": statistics.median(solved),
        "exchange_share": statistics.median(exchanged),
        "term_shares": {name: statistics.median(values) for name, values in shares.items()},
        "memory_mb": memory,
    }


def _exchange(engine: str) -> tuple[Any, list[str]]:
    """Return who exchanges data with the engine, and by which methods."""
    if engine != "ovphysx":
        return None, []
    from ovphysx.api import TensorBinding

    return TensorBinding, ["read", "write"]


def _time_term(env: Any, name: str, clock: Callable[[], float]) -> list[float]:
    """Let an observation or curriculum term add up the seconds it takes, and return the sum."""
    observations, curriculum = env.observation_manager, env.curriculum_manager
    terms = dict(zip(curriculum.active_terms, curriculum._term_cfgs, strict=True))
    for group, names in observations.active_terms.items():
        terms.update(zip(names, observations._group_obs_term_cfgs[group], strict=True))
    if name not in terms:
        raise UserError(f"no observation or curriculum term '{name}'; there are: {', '.join(sorted(terms))}")
    term = terms[name]
    if hasattr(term.func, "reset"):
        return _time_calls(type(term.func), ["__call__", "reset"], env.device, clock)
    return _time_calls(term, ["func"], env.device, clock)


def _time_calls(owner: Any, names: list[str], device: str, clock: Callable[[], float]) -> list[float]:
    """Let methods add up the seconds they take, and return the sum (a list of one number)."""
    total = [0.0]

    def timed(call: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            begin = clock()
            try:
                return call(*args, **kwargs)
            finally:
                _synchronize(device)
                total[0] += clock() - begin

        return wrapped

    for name in names:
        setattr(owner, name, timed(getattr(owner, name)))
    return total


def _synchronize(device: str) -> None:
    if "cuda" in str(device):
        import torch

        torch.cuda.synchronize(device)


def _measure_in_child(
    task: str, engine: str, num_envs: str, args: argparse.Namespace, overrides: list[str]
) -> dict[str, Any]:
    command = [sys.executable, *sys.argv[:2], "--one", "--task", task, "--physics", engine, "--num_envs", num_envs]
    command += ["--steps", str(args.steps), "--repeats", str(args.repeats), *overrides]
    if args.processor_time:
        command.append("--processor_time")
    if args.terms:
        command += ["--terms", args.terms]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"{task} on {engine} with {num_envs} envs failed: {result.stderr.strip().splitlines()[-1]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def _format(row: dict[str, Any]) -> str:
    solve, exchange = row["solve_share"], row["exchange_share"]
    values = (
        row["task"],
        row["engine"],
        row["num_envs"],
        f"{row['start_s']:.1f}",
        f"{row['steps_per_s']:.0f}",
        f"{row['lowest']:.0f}-{row['highest']:.0f}",
        f"{solve:.0%}",
        f"{exchange:.0%}",
        f"{1 - solve - exchange:.0%}",
        f"{row['memory_mb']:.0f}",
        *(f"{name} {share:.1%}" for name, share in row["term_shares"].items()),
    )
    return " | ".join(map(str, values))


def _memory_per_env(rows: list[dict[str, Any]]) -> list[str]:
    """Return what an environment takes, from the smallest and the largest measurement of each task and engine."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["engine"]), []).append(row)
    lines = []
    for (task, engine), group in groups.items():
        few, many = min(group, key=lambda r: r["num_envs"]), max(group, key=lambda r: r["num_envs"])
        if many["num_envs"] > few["num_envs"]:
            size = 1024 * (many["memory_mb"] - few["memory_mb"]) / (many["num_envs"] - few["num_envs"])
            lines.append(f"{task} on {engine}: {size:.0f} kB an environment")
    return lines
