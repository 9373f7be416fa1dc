"""ESAC's Figure 2 again: who finds the way round the cyclic MDP, and how much that hangs on the mutation rate.

    .venv/bin/python tools/cyclic_mdp.py                        # all runs, about an hour on one core
    .venv/bin/python tools/cyclic_mdp.py --only es,ppo --seeds 1 --seconds 20
    .venv/bin/python tools/cyclic_mdp.py --draw                 # the figure from runs.csv alone

Writes ``runs.csv`` (a row an iteration) and ``cyclic_mdp.png`` into ``docs/results/esac``. Every agent has 50
environments and a net of 2 x 32; a run ends when its policy is right in all three states and its episodes last, or when
its time or its steps are over.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from epo_lab.algorithms.base import Algorithm
from epo_lab.base.keys import BROKEN
from epo_lab.base.options import merge
from epo_lab.base.tables import markdown
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.cyclic_mdp import CLOCKWISE, STATES, CyclicMdpEnv

TASK = "Epo-Diag-CyclicMdp-v0"
OUTPUT = Path(__file__).parents[1] / "docs/results/esac"
NUM_ENVS = 50
SOLVED = 0.95
"""Share of the best return that episodes must have on average, exploration included."""

NETWORK = {"hidden_dims": [32, 32], "activation": "relu", "obs_normalization": False}
ES = {"num_agents": 50, "fitness": {"source": "return"}}
ESAC = {**ES, "warmup_steps": 2000, "batch_size": 128, "updates_per_step": 0.5, "esac": {"sac_episodes": 50}}


def _es(sigma: float) -> dict[str, Any]:
    return {**ES, "es": {"sigma": sigma, "learning_rate": sigma}}


def _esac(zeta: float) -> dict[str, Any]:
    return {**ESAC, "es": {"sigma": 0.1, "learning_rate": 0.1, "zeta": zeta, "amt_fitness": "raw"}}


RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "es": ("es", _es(0.1)),
    "es sigma 0.001": ("es", _es(0.001)),
    "es sigma 0.01": ("es", _es(0.01)),
    "es sigma 1": ("es", _es(1.0)),
    "ppo": ("ppo", {}),
    "td3": ("td3", {"warmup_steps": 2000, "batch_size": 128, "updates_per_step": 0.5, "learning_rate": 1e-3}),
    "esac": ("esac_paper", _esac(1e-4)),
    "esac zeta 1e-6": ("esac_paper", _esac(1e-6)),
    "esac zeta 1e-2": ("esac_paper", _esac(1e-2)),
    "esac zeta 1": ("esac_paper", _esac(1.0)),
}
"""Preset and settings of the algorithm, by the name of a run."""


def make(preset: str, changes: dict[str, Any], seed: int) -> tuple[Algorithm, CyclicMdpEnv, int]:
    """Return an algorithm, its environments and the steps of its roll-outs."""
    random.seed(seed)
    torch.manual_seed(seed)
    env = CyclicMdpEnv(NUM_ENVS, seed=seed)
    cfg = agent_settings(TASK, preset)["agent"]
    cfg["seed"] = seed
    cfg = merge(cfg, {"actor": NETWORK, "critic": NETWORK, "algorithm": changes})
    with contextlib.redirect_stdout(io.StringIO()):  # rsl_rl prints its observation sets
        kind = resolve_callable(cfg["algorithm"]["class_name"])
        algorithm = kind.construct_algorithm(env.get_observations(), env, cfg, "cpu")
        algorithm.scalars_in_extras = False
        algorithm.train_mode()
    # members are judged by whole episodes, so that short roll-outs are of no use to them
    population = cfg["algorithm"].get("num_agents", 1) > 1
    return algorithm, env, 100 if population else cfg["num_steps_per_env"]


def policy_return(policy: Any, horizon: int) -> float:
    """Return what the deterministic policy reaches, from its choice in every state."""
    obs = TensorDict({"policy": torch.eye(STATES)}, batch_size=[STATES])
    with torch.inference_mode():
        right = (policy(obs).argmax(dim=-1) == CLOCKWISE).tolist()
    return float(horizon) if all(right) else float(right.index(False)) - 1.0


def train(preset: str, changes: dict[str, Any], seed: int, seconds: float, most_steps: int) -> Iterator[dict[str, Any]]:
    """Train, and hand out what every iteration reached."""
    algorithm, env, length = make(preset, changes, seed)
    obs = env.get_observations()
    begin = time.process_time()
    running, episodes, steps, last = torch.zeros(NUM_ENVS), 0, 0, float("nan")
    while time.process_time() - begin < seconds and steps < most_steps:
        ended: list[float] = []
        with torch.inference_mode():
            for _ in range(length):
                clock = env.episode_length_buf.clone()
                obs, rewards, dones, extras = env.step(algorithm.act(obs))
                extras[BROKEN] = torch.zeros(NUM_ENVS, dtype=torch.bool)
                algorithm.process_env_step(obs, rewards, dones, extras)
                running += rewards
                # an episode that a new generation cut off had its clock set to the end
                whole = dones.bool() & (clock < env.horizon)
                ended += running[whole].tolist()
                running[dones.bool()] = 0.0
            algorithm.compute_returns(obs)
        algorithm.update()
        algorithm.records()
        steps += length * NUM_ENVS
        episodes += len(ended)
        last = float(np.mean(ended)) if ended else last
        best = policy_return(algorithm.policy(), env.horizon)
        yield {
            "steps": steps,
            "episodes": episodes,
            "return": round(last, 2),
            "policy_return": best,
            "generation": algorithm.scalars().get("Generation/events", ""),
            "mutation_rate": algorithm.scalars().get("Population/mutation_rate", ""),
            "gradient_steps": algorithm.clock.gradient_steps,
            "seconds": round(time.process_time() - begin, 1),
        }
        if best == env.horizon and ended and last >= SOLVED * env.horizon:
            return


def table(path: Path) -> str:
    """Return how every run ended, as a Markdown table: a cell a seed."""
    ends: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for row in csv.DictReader(path.open()):
        ends[row["run"]][row["seed"]] = row

    def cells(name: str, column: str, form: str) -> str:
        return ", ".join(form.format(float(row[column])) for row in ends[name].values() if row[column])

    names = [name for name in RUNS if name in ends]
    rows = [
        [
            name,
            f"{sum(float(row['return']) >= SOLVED * 2000 for row in ends[name].values())} of {len(ends[name])}",
            cells(name, "return", "{:.0f}"),
            cells(name, "steps", "{:,.0f}"),
            cells(name, "generation", "{:.0f}"),
            cells(name, "mutation_rate", "{:.3g}"),
            cells(name, "gradient_steps", "{:.0f}"),
        ]
        for name in names
    ]
    header = [
        "run",
        "solved",
        "last return",
        "environment steps",
        "generations",
        "last mutation rate",
        "gradient steps",
    ]
    return markdown(header, rows)


def draw(path: Path) -> None:
    """Draw returns over episodes and steps, by method, mutation rate and zeta."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    curves: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(path.open()):
        curves[row["run"]][row["seed"]].append(row)
    panels = {
        "methods": ["es", "esac", "ppo", "td3"],
        "ES: mutation rate": [name for name in RUNS if name.startswith("es") and not name.startswith("esac")],
        "ESAC: zeta": [name for name in RUNS if name.startswith("esac")],
    }
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True)
    for axis, (title, names) in zip(axes, panels.items(), strict=True):
        for number, name in enumerate(names):
            for index, rows in enumerate(curves.get(name, {}).values()):
                x = [float(row["steps"]) for row in rows]
                y = [float(row["return"]) for row in rows]
                axis.plot(x, y, color=f"C{number}", alpha=0.8, linewidth=1.2, label=name if index == 0 else None)
                axis.plot(x[-1], y[-1], "o", color=f"C{number}", markersize=3)
        axis.set(xscale="log", title=title, xlabel="environment steps")
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("return of whole episodes")
    figure.tight_layout()
    figure.savefig(path.with_name("cyclic_mdp.png"), dpi=120)


def main() -> None:
    """Run everything and write table and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of runs, separated by commas (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0, help="most processor time of a run")
    parser.add_argument("--steps", type=int, default=4_000_000, help="most environment steps of a run")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--draw", action="store_true", help="only draw what runs.csv holds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "runs.csv"
    if not args.draw:
        names = args.only.split(",") if args.only else list(RUNS)
        kept = [] if not path.is_file() else [row for row in csv.DictReader(path.open()) if row["run"] not in names]
        with path.open("w", newline="") as file:
            writer: csv.DictWriter | None = None
            for row in chain(kept, _all_runs(names, args)):
                if writer is None:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
    draw(path)
    print(f"{table(path)}\n\nWritten: {path} and cyclic_mdp.png")


def _all_runs(names: list[str], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in names:
        preset, changes = RUNS[name]
        for seed in range(args.seeds):
            row: dict[str, Any] = {}
            for row in train(preset, changes, seed, args.seconds, args.steps):
                yield {"run": name, "seed": seed, **row}
            solved = row["policy_return"] >= 2000.0 and row["return"] >= SOLVED * 2000.0
            print(f"{name}, seed {seed}: {'solved' if solved else 'not solved'}, {row}", flush=True)


if __name__ == "__main__":
    main()
