"""Several runs beside each other: their curves, and the settings in which they differ."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from .plots import PALETTE, blank, smooth
from .record import RunRecord, flat_settings
from .story import last_tenth, score_curve

OWN = ("seed", "run_name", "experiment_name", "max_iterations")
"""Last words of settings that may differ between runs of the same kind."""
MOST_TOLD = 3
"""Settings in the name of a group."""


def differing(runs: list[RunRecord]) -> dict[str, list[str]]:
    """Return the settings that are not the same in all runs, by their path, with the value of each run."""
    flat = [flat_settings(run) for run in runs]
    paths = sorted(set().union(*flat))
    rows = {path: [settings.get(path, "") for settings in flat] for path in paths}
    return {path: values for path, values in rows.items() if len(set(values)) > 1}


def groups(runs: list[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return runs of the same task, agent and settings together, by a name; they differ in their seeds."""
    kinds = {path: values for path, values in differing(runs).items() if path.rpartition(".")[2] not in OWN}
    alike: dict[tuple[str, ...], list[RunRecord]] = {}
    for number, run in enumerate(runs):
        key = (str(run.manifest.get("task", "")), run.agent, *(values[number] for values in kinds.values()))
        alike.setdefault(key, []).append(run)

    found: dict[str, list[RunRecord]] = {}
    tasks = {key[0] for key in alike}
    for key, members in alike.items():
        task, agent, *values = key
        words = [*([task] if len(tasks) > 1 else []), agent or members[0].folder.name]
        if sum(other[:2] == key[:2] for other in alike) > 1:
            # the agent alone does not tell them apart: a few settings do
            told = [f"{path.rpartition('.')[2]}={value}" for path, value in zip(kinds, values, strict=True) if value]
            words += told[:MOST_TOLD]
        name = " ".join(words)
        found[name if name not in found else f"{name} ({len(found) + 1})"] = members
    return found


def together(runs: list[RunRecord]) -> go.Figure:
    """A thin line a run, a colour a group, and a thick line for the mean of a group of several."""
    figure = blank(430, "environment steps", "fitness of the master or the best, or mean reward")
    for number, (name, members) in enumerate(groups(runs).items()):
        color = PALETTE[number % len(PALETTE)]
        curves = [(steps, values) for steps, values, _ in map(score_curve, members) if len(values)]
        for place, curve in enumerate(curves):
            x, y = smooth(*curve)
            width, opacity = (1.0, 0.45) if len(curves) > 1 else (2.2, 1.0)
            line = {"color": color, "width": width}
            shown = len(curves) == 1
            trace = go.Scatter(x=x, y=y, mode="lines", line=line, opacity=opacity, legendgroup=name, showlegend=shown)
            trace.name = name if shown else f"{name}, {members[place].folder.name}"
            figure.add_trace(trace)
        if len(curves) > 1:
            # over the steps that all runs of the group have made
            begin, end = max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves)
            grid = np.linspace(begin, end, 200)
            mean = np.mean([np.interp(grid, *smooth(*curve)) for curve in curves], axis=0)
            line = {"color": color, "width": 3}
            figure.add_trace(
                go.Scatter(
                    x=grid, y=mean, mode="lines", line=line, legendgroup=name, name=f"{name} ({len(curves)} runs)"
                )
            )
    return figure


def summary_rows(runs: list[RunRecord]) -> list[tuple[str, ...]]:
    """Return a row a run: folder, task, agent, seed, steps, what it ended at, and generations."""
    rows = []
    for run in runs:
        steps, values, _ = score_curve(run)
        end = f"{last_tenth(values):.4g}" if len(values) else ""
        best = f"{values.max():.4g}" if len(values) else ""
        seed = flat_settings(run).get("agent.seed", "")
        task = str(run.manifest.get("task", ""))
        made = f"{steps[-1]:,.0f}" if len(steps) else ""
        rows.append((run.folder.name, task, run.agent, seed, made, end, best, str(run.generations)))
    return rows


SUMMARY = ("run", "task", "agent", "seed", "steps", "end (last tenth)", "best", "generations")
