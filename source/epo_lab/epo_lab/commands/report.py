"""Write the report of a run."""

from __future__ import annotations

from pathlib import Path

from epo_lab.report.page import FILE_NAME, write_report
from epo_lab.report.record import read_run
from epo_lab.runner.folder import check_writable

METRICS = ("Metrics/successes", "Metrics/score", "Metrics/terrain_level", "Metrics/episode_return")
"""Metrics of tasks, tried in this order, so that Isaac Lab need not be loaded for a name."""


def report(folder: Path, output: Path | None = None) -> int:
    """Write the page and return the exit code.

    Args:
        folder: Run folder.
        output: Where the page goes. Defaults to None: into the run folder.
    """
    run = read_run(folder)
    path = output or folder / FILE_NAME
    check_writable(path.parent)
    metric = next((tag for tag in METRICS if len(run.curve(tag)[1])), None)
    write_report(run, path, metric)
    print(f"Report: {path.resolve()}")
    return 0
