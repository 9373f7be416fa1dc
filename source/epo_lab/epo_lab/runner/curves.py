"""Every logged scalar as a table (``curves.csv``) and the main ones as a picture (``curves.png``)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from epo_lab.base.files import replace_text, whole_lines

ITERATION = "iteration"


class CurveTable:
    """A csv file with a row an iteration; columns may appear while the run goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns = [ITERATION]
        self._row: dict[str, float] = {}
        if path.exists():
            self._columns = read_curves(path)[0]

    def add(self, tag: str, value: float, iteration: int) -> None:
        """Note one scalar of the current iteration."""
        self._row[ITERATION] = iteration
        self._row[tag] = value

    def write_row(self) -> None:
        """Append what was noted and begin a new row."""
        if not self._row:
            return
        new = [tag for tag in self._row if tag not in self._columns]
        if new or not self._path.exists():
            self._widen(new)
        with self._path.open("a", newline="") as file:
            row = {tag: _text(value) for tag, value in self._row.items()}
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)
        self._row = {}

    def drop_after(self, iteration: int) -> None:
        """Forget rows of iterations that a resumed run does again."""
        if self._path.exists():
            columns, rows = read_curves(self._path)
            self._rewrite(columns, [row for row in rows if int(row[ITERATION]) <= iteration])

    def _widen(self, new: list[str]) -> None:
        rows = read_curves(self._path)[1] if self._path.exists() else []
        self._columns += new
        self._rewrite(self._columns, rows)

    def _rewrite(self, columns: list[str], rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        replace_text(self._path, text.getvalue())


def read_curves(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and the rows of a ``curves.csv``; values are text, empty where nothing was logged."""
    reader = csv.DictReader(whole_lines(path))
    rows = list(reader)
    return list(reader.fieldnames or [ITERATION]), rows


def mean_over(rows: list[dict[str, str]], tag: str, first: int, last: int) -> float | None:
    """Return the mean of a column over the iterations from ``first`` to ``last``; None if nothing was logged."""
    values = [float(row[tag]) for row in rows if first <= int(row[ITERATION]) <= last and row.get(tag)]
    return sum(values) / len(values) if values else None


def plot_curves(
    runs: dict[str, Path], png_path: Path, tags: list[str], x_tag: str = "Perf/total_steps", smooth: int = 1
) -> bool:
    """Draw some columns of one or several ``curves.csv`` over the environment steps; return whether there was one.

    Args:
        runs: Files by the name of their line.
        png_path: Where the picture goes.
        tags: Columns; those that no file has are left out.
        x_tag: Column of the horizontal axis.
        smooth: Values to average, as they come. Defaults to 1: none.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    tables = {name: read_curves(path) for name, path in runs.items()}
    tags = [tag for tag in tags if any(tag in columns for columns, _ in tables.values())]
    if not tags or not any(rows for _, rows in tables.values()):
        return False
    width = min(4, len(tags))
    height = -(-len(tags) // width)
    figure, axes = plt.subplots(height, width, figsize=(4.2 * width, 3.2 * height), squeeze=False, layout="constrained")
    for axis in axes.flat[len(tags) :]:
        axis.remove()
    for axis, tag in zip(axes.flat, tags, strict=False):
        for name, (_, rows) in tables.items():
            points = [(float(row.get(x_tag) or row[ITERATION]), float(row[tag])) for row in rows if row.get(tag)]
            if points:
                axis.plot(*_moving_mean(points, smooth), linewidth=1.2, label=name)
        axis.set_title(tag, fontsize=10)
        axis.set_xlabel("environment steps" if any(x_tag in columns for columns, _ in tables.values()) else ITERATION)
        axis.grid(alpha=0.3)
        if len(runs) > 1:
            axis.legend(fontsize=8)
    figure.savefig(png_path, dpi=110)
    plt.close(figure)
    return True


def _moving_mean(points: list[tuple[float, float]], width: int) -> tuple[list[float], list[float]]:
    """Return the points with every value replaced by the mean of it and the values before, up to ``width``."""
    values = [value for _, value in points]
    means = []
    for end in range(1, len(values) + 1):
        window = values[max(0, end - width) : end]
        means.append(sum(window) / len(window))
    return [x for x, _ in points], means


def _text(value: float) -> str:
    return f"{value:.7g}"
