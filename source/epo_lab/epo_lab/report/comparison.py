"""The table and the figure of a comparison: methods x tasks x seeds."""

from __future__ import annotations

import csv
import io
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from epo_lab.base.files import replace_file, replace_text
from epo_lab.evaluation.statistics import bootstrap_interval, interquartile_mean


@dataclass(frozen=True)
class Score:
    """One number of one run."""

    task: str
    agent: str
    seed: int
    kind: str
    """``curve`` (the master while it trains, with exploration) or ``final`` (deterministic, after training)."""
    steps: int
    """Environment steps of all agents together."""
    score: float


def write_scores(path: Path, scores: Iterable[Score]) -> None:
    """Write the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Score)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(score), "score": f"{score.score:.4f}"} for score in scores)
    replace_text(path, text.getvalue())


def read_scores(path: Path) -> list[Score]:
    """Read the table."""
    with path.open(newline="") as file:
        return [
            Score(row["task"], row["agent"], int(row["seed"]), row["kind"], int(row["steps"]), float(row["score"]))
            for row in csv.DictReader(file)
        ]


def merge(old: list[Score], new: list[Score]) -> list[Score]:
    """Return all runs, tasks and agents in the order of their first appearance; a run in both is the new one."""
    done = {(score.task, score.agent, score.seed) for score in new}
    scores = [score for score in old if (score.task, score.agent, score.seed) not in done] + new
    tasks, agents = _names(scores)
    return sorted(scores, key=lambda score: (tasks.index(score.task), agents.index(score.agent), score.seed))


def summarize(scores: list[Score]) -> str:
    """Return a Markdown table: interquartile mean and 95 % interval of the final scores."""
    tasks, agents = _names(scores)
    lines = ["| task | " + " | ".join(agents) + " |", "|---" * (len(agents) + 1) + "|"]
    for task in tasks:
        cells = []
        for agent in agents:
            values = _final(scores, task, agent)
            if len(values) == 0:
                cells.append("")
                continue
            cells.append(f"{float(interquartile_mean(values)):.3f}{_interval(values)}")
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(scores: list[Score], path: Path) -> None:
    """Draw a row of learning curves and a row of final scores, a column for each task."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import EngFormatter, MaxNLocator

    tasks, agents = _names(scores)
    # names of settings can be long: they take their own room
    width = 4.0 * len(tasks) + 0.09 * max(map(len, agents))
    figure, axes = plt.subplots(
        2, len(tasks), figsize=(width, 4.5 + 0.3 * len(agents)), squeeze=False, layout="constrained",
        height_ratios=[3.5, 1 + 0.3 * len(agents)],
    )  # fmt: skip
    colors = plt.get_cmap("tab10" if len(agents) <= 10 else "turbo", max(10, len(agents)))
    for column, task in enumerate(tasks):
        top, bottom = axes[0][column], axes[1][column]
        for number, agent in enumerate(agents):
            color = colors(number)
            steps, values = _curves(scores, task, agent)
            if len(values):
                low, high = bootstrap_interval(values)
                top.plot(steps, interquartile_mean(values, axis=0), label=agent, color=color)
                top.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
            final = _final(scores, task, agent)
            if len(final):
                middle = float(interquartile_mean(final))
                bottom.barh(number, middle, color=color, alpha=0.5)
                if len(final) > 1:
                    low, high = bootstrap_interval(final)
                    bottom.plot([float(low), float(high)], [number, number], color="black", linewidth=1.5)
                bottom.plot(final, [number] * len(final), ".", color=color, markersize=5)
        top.set_title(task, fontsize=11)
        top.set_xlabel("environment steps")
        top.xaxis.set_major_locator(MaxNLocator(5))
        top.xaxis.set_major_formatter(EngFormatter(sep=" "))
        top.grid(alpha=0.3)
        bottom.set_yticks(range(len(agents)), agents if column == 0 else [])
        bottom.invert_yaxis()
        bottom.set_xlabel("final score, deterministic")
        bottom.grid(alpha=0.3, axis="x")
    axes[0][0].set_ylabel("score of the master")
    # the names beside the bars are the legend
    for number, label in enumerate(axes[1][0].get_yticklabels()):
        label.set_color(colors(number))
    # a narrow figure breaks its title into lines
    title = "Interquartile mean over seeds; band, bar: 95 % interval; dots: seeds"
    figure.suptitle(textwrap.fill(title, width=round(11 * width)), fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, lambda scratch: figure.savefig(scratch, dpi=110, format="png"))
    plt.close(figure)


def _names(scores: list[Score]) -> tuple[list[str], list[str]]:
    return list(dict.fromkeys(s.task for s in scores)), list(dict.fromkeys(s.agent for s in scores))


def _interval(values: np.ndarray) -> str:
    """Return the 95 % interval in brackets; nothing for a single seed, which has none."""
    if len(values) < 2:
        return ""
    low, high = bootstrap_interval(values)
    return f" [{float(low):.3f}, {float(high):.3f}]"


def _final(scores: list[Score], task: str, agent: str) -> np.ndarray:
    return np.array([s.score for s in scores if (s.task, s.agent, s.kind) == (task, agent, "final")])


def _curves(scores: list[Score], task: str, agent: str) -> tuple[list[int], np.ndarray]:
    """Return the steps at which all seeds have a score, and these scores with a row for each seed."""
    by_step: dict[int, dict[int, float]] = defaultdict(dict)
    for s in scores:
        if (s.task, s.agent, s.kind) == (task, agent, "curve"):
            by_step[s.steps][s.seed] = s.score
    most = max((len(row) for row in by_step.values()), default=0)
    steps = sorted(step for step, row in by_step.items() if len(row) == most)
    seeds = sorted(by_step[steps[0]]) if steps else []
    return steps, np.array([[by_step[step][seed] for step in steps] for seed in seeds])
