"""Every logged scalar as a table (``curves.csv``) and the main ones as a picture (``curves.png``)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from epo_lab.base.files import replace_file, replace_text, whole_lines

from .aside import set_lines_aside

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
        """Forget rows of iterations that a resumed run does again, and set damaged lines aside."""
        if self._path.exists():
            set_lines_aside(self._path, damaged_rows(self._path))
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
    """Return the columns and the rows of a ``curves.csv``; values are text, empty where nothing was logged.

    Damaged lines are left out; if the first is one, all are.
    """
    columns, *rows = [_cells(line) for line in whole_lines(path)] or [[ITERATION]]
    if columns[:1] != [ITERATION]:
        return [ITERATION], []
    return columns, [dict(zip(columns, row, strict=True)) for row in rows if _is_row(row, len(columns))]


def damaged_rows(path: Path) -> list[str]:
    """Return the lines of a ``curves.csv`` that :func:`read_curves` leaves out."""
    header, *lines = whole_lines(path) or [ITERATION]
    columns = _cells(header)
    if columns[:1] != [ITERATION]:
        return [header, *lines]
    return [line for line in lines if not _is_row(_cells(line), len(columns))]


def _cells(line: str) -> list[str]:
    # Note: a line at a time, so that a stray quote does not swallow those after it
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _is_row(cells: list[str], length: int) -> bool:
    """Return whether a row has the iteration, and a number or nothing in every other column."""
    try:
        iteration, *_ = [int(cells[0]), *(float(cell) for cell in cells[1:] if cell)]
    except (ValueError, IndexError):
        return False
    return len(cells) == length and iteration >= 0


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
    from matplotlib.ticker import EngFormatter, MaxNLocator

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
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axis.set_xlabel("environment steps" if any(x_tag in columns for columns, _ in tables.values()) else ITERATION)
        axis.grid(alpha=0.3)
        if len(runs) > 1:
            axis.legend(fontsize=8)
    replace_file(png_path, lambda scratch: figure.savefig(scratch, dpi=110, format=png_path.suffix[1:].lower()))
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
