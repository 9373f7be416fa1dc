"""The map of the genes and the lineage in the form that loggers take."""

from __future__ import annotations

from typing import Any

import numpy as np

from .record import ITERATION, RunRecord, gene_places

LINEAGE_HEADER = ["event", "iteration", "slot", "gene", "replaces", "parent 1", "parent 2", "age", "fitness"]


def lineage_rows(run: RunRecord) -> list[list[Any]]:
    """Return a row for every gene that was born: where, of whom, and in whose place (with its age and fitness)."""
    return [
        [
            event["event"],
            event[ITERATION],
            child["slot"],
            child["id"],
            child["replaced_id"],
            *[*child["parent_ids"], None, None][:2],
            child["replaced_age"],
            event["fitness"][child["slot"]],
        ]
        for event in run.lineage
        for child in event["children"]
    ]


def gene_picture(run: RunRecord) -> np.ndarray | None:
    """Return the map of the genes as a picture, shape (height, width, 3), or None if there is nothing to show."""
    found = gene_places(run)
    if found is None:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _, places, shares = found
    figure = Figure(figsize=(6.0, 4.5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    last = places[-1]
    fitness = [np.nan if value is None else value for value in run.census[-1]["fitness"]]
    points = axes.scatter(*last[1:].T, c=fitness[1:], s=60, cmap="viridis", zorder=2)
    axes.scatter(*last[0], marker="*", s=220, color="#d1495b", zorder=2, label="master")
    for slot, place in enumerate(last[1:], start=1):
        axes.annotate(str(slot), place, textcoords="offset points", xytext=(5, 5), fontsize=8)
    figure.colorbar(points, label="fitness")
    axes.set_xlabel(f"first axis ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second axis ({shares[1]:.0%})")
    axes.set_title(f"genes at iteration {run.census[-1][ITERATION]}")
    axes.legend()
    axes.grid(alpha=0.3)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
