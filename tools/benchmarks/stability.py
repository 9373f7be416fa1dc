"""Count what random full-range actions break in the physics of an Allegro-Kuka task."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from epo_lab.base.errors import UserError
from epo_lab.commands.backends.isaac import open_scene
from epo_lab.commands.quiet import quiet
from epo_lab.commands.tasks import find_task


def benchmark_stability(args: argparse.Namespace, overrides: list[str]) -> int:
    """Measure, print one line a number, and return the exit code."""
    settings = [f"physics={args.physics}", "env.num_object_variants=null", *overrides]
    with ExitStack() as stack:
        with quiet("Starting the simulation", verbose=False):
            if not find_task(args.task).id.startswith("Epo-Kuka-"):
                raise UserError(f"{args.task} is no Allegro-Kuka task: only these are measured")
            env = stack.enter_context(open_scene(args.task, settings, args.num_envs))

        from benchmarks.kuka_stability import measure_stability

        result = measure_stability(env, args.steps, report=lambda done: print(f"{done} of {args.steps}", flush=True))
    print(f"{args.task}, {args.physics}, {args.num_envs} envs x {args.steps} steps of random actions")
    for name, value in result.items():
        print(f"{name.replace('_', ' '):<18} {value}")
    return 0
