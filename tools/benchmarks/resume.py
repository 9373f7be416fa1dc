"""Measure how exactly a simulated task goes on from its saved state, in another process.

One process takes random steps, saves the state and takes more; another one restores the state and takes the same
actions. What is compared is all that a learner sees: observations, rewards, ends of episodes. The continuation of a run
that did not save is compared too: saving lets PhysX forget its contacts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch

from epo_lab.base.errors import UserError
from epo_lab.commands.backends import isaac
from epo_lab.commands.tasks import find_task
from epo_lab.runner.physics import save_physics, set_physics_state
from epo_lab.runner.state import rng_state, set_rng_state

COLUMNS = (
    *("task", "physics", "kB/env", "at once", "step 1", "step 100", "typical", "same ends"),
    *("unsaved: step 1", "typical", "anew: typical"),
)
LOOKS = (1, 10, 100)
"""Steps after which observations are compared."""
SPEED = 0.5
"""Standard deviation of the actions."""


class Recording(NamedTuple):
    """What a learner sees: one observation more than there are steps."""

    obs: torch.Tensor
    rewards: torch.Tensor
    ends: torch.Tensor


def benchmark_resume(args: argparse.Namespace, overrides: list[str]) -> int:
    """Measure every combination in processes of its own, and print a table."""
    if args.part:
        print(json.dumps(PARTS[args.part](args, overrides)))
        return 0
    for task in args.task.split(","):
        find_task(task)
    print(" | ".join(COLUMNS))
    rows = []
    for task in args.task.split(","):
        for engine in args.physics.split(","):
            row = measure_resume(
                task, engine, args.num_envs, args.before, args.steps, args.seed, overrides, unsaved=args.unsaved
            )
            rows.append(row)
            print(_format(row), flush=True)
    where = f"{platform.machine()}, {os.cpu_count()} cores"
    print(f"{args.num_envs} environments, {args.before} steps before, {where}, {date.today()}")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def measure_resume(
    task: str,
    engine: str,
    num_envs: int,
    before: int,
    steps: int,
    seed: int,
    overrides: list[str],
    *,
    unsaved: bool = False,
) -> dict[str, Any]:
    """Return how the continuation of a saved state differs from the run that was not interrupted.

    Args:
        task: Id of the task.
        engine: Name of the physics preset.
        num_envs: Number of environments.
        before: Steps before the state is saved.
        steps: Steps that are compared.
        seed: Seed of environments and actions.
        overrides: Settings of the task.
        unsaved: Whether a run that does not save is compared too.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).parents[1] / "benchmark.py"), "resume", "--task", task]
        command += ["--physics", engine, "--num_envs", str(num_envs), "--before", str(before), "--steps", str(steps)]
        command += ["--seed", str(seed), "--folder", folder]
        for part in PARTS if unsaved else [part for part in PARTS if part != "unsaved"]:
            result = subprocess.run([*command, "--part", part, *overrides], capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise UserError(f"{task} on {engine} failed ({part}): {result.stderr.strip()[-600:]}")
        return {"task": task, "engine": engine, "num_envs": num_envs, **json.loads(result.stdout.splitlines()[-1])}


def play(env: Any, actions: torch.Tensor) -> Recording:
    """Take steps, and return what was seen."""
    obs, rewards, ends = [_seen(env)], [], []
    with torch.inference_mode():
        for action in actions:
            _, reward, terminated, truncated, _ = env.step(action.clone())
            obs.append(_seen(env))
            rewards.append(reward.clone())
            ends.append(terminated | truncated)
    return Recording(torch.stack(obs), torch.stack(rewards), torch.stack(ends))


def draw_actions(env: Any, count: int, seed: int) -> torch.Tensor:
    """Return random actions. Shape is (count, num_envs, action_dim)."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(count, env.num_envs, *env.single_action_space.shape, generator=generator)
    return SPEED * drawn.to(env.device)


def differences(run: Recording, resumed: Recording) -> dict[str, Any]:
    """Return the largest difference of an observed number at once and after some steps, and how many ends agree."""
    apart = (run.obs - resumed.obs).abs().flatten(2).amax(dim=-1)
    looks = {f"step_{look}": float(apart[look].amax()) for look in LOOKS if look < len(apart)}
    return {
        "at_once": float(apart[0].amax()),
        **looks,
        "typical": float(apart[-1].median()),
        "first_reward": float((run.rewards[0] - resumed.rewards[0]).abs().amax()),
        "same_ends": float((run.ends == resumed.ends).all(dim=0).float().mean()),
        "ends": int(run.ends.sum()),
    }


def _record(args: argparse.Namespace, overrides: list[str]) -> dict[str, Any]:
    """Take steps, save if this is the run that does, and record more steps."""
    folder = Path(args.folder)
    with _open(args, overrides) as env:
        actions = draw_actions(env, args.before + args.steps, args.seed)
        play(env, actions[: args.before])
        if args.part == "record":
            torch.save({"physics": save_physics(env), "rng": rng_state()}, folder / "physics.pt")
        run = play(env, actions[args.before :])
    torch.save({"run": tuple(run), "actions": actions[args.before :]}, folder / f"{args.part}.pt")
    return {}


def _replay(args: argparse.Namespace, overrides: list[str]) -> dict[str, Any]:
    """Restore, take the same steps and compare; then begin anew with the same actions, as a resumed run else does."""
    folder = Path(args.folder)
    saved = torch.load(folder / "physics.pt", weights_only=True)
    recorded = torch.load(folder / "record.pt", weights_only=True)
    run = Recording(*recorded["run"])
    with _open(args, overrides) as env:
        because = set_physics_state(env, saved["physics"])
        if because:
            raise UserError(because)
        set_rng_state(saved["rng"])
        resumed = play(env, recorded["actions"])
        env.reset()
        anew = differences(run, play(env, recorded["actions"]))
    size = (folder / "physics.pt").stat().st_size
    found = {"resumed": differences(run, resumed), "unsaved": {}, "anew": anew}
    if (folder / "unsaved.pt").is_file():
        other = Recording(*torch.load(folder / "unsaved.pt", weights_only=True)["run"])
        found["unsaved"] = differences(other, run)
    return {**found, "bytes": size, "leaves": len(saved["physics"]["leaves"])}


PARTS = {"record": _record, "unsaved": _record, "replay": _replay}
"""What a process of its own does, in this order."""


def _open(args: argparse.Namespace, overrides: list[str]) -> Any:
    return isaac.open_scene(args.task, [f"physics={args.physics}", *overrides], args.num_envs)


def _seen(env: Any) -> torch.Tensor:
    """Return all observations. Shape is (num_envs, n)."""
    return torch.cat([group.flatten(1) for group in env.obs_buf.values()], dim=-1).clone()


def _format(row: dict[str, Any]) -> str:
    def shown(of: str, *names: str) -> list[str]:
        return [f"{row[of][name]:.2g}" if name in row[of] else "-" for name in names]

    resumed = shown("resumed", "at_once", "step_1", "step_100", "typical", "same_ends")
    unsaved = shown("unsaved", "step_1", "typical")
    kilobytes = f"{row['bytes'] / 1000 / row['num_envs']:.1f}"
    return " | ".join([row["task"], row["engine"], kilobytes, *resumed, *unsaved, *shown("anew", "typical")])
