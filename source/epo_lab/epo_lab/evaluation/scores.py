"""What policies reach, in a table with the papers' scores beside it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epo_lab.base.files import replace_text
from epo_lab.base.tables import markdown

from .statistics import bootstrap_interval

FILE_NAME = "evaluation.json"
PUBLISHED = Path(__file__).parent / "published.yaml"
COLUMNS = ("policy", "iteration", "agent", "engine", "episodes", "{metric}", "spread", "95 % interval", "return")
MORE_COLUMNS = ("length", "ended early", "succeeded")


@dataclass(frozen=True)
class Evaluation:
    """What one agent of one checkpoint reached on one engine."""

    policy: str
    checkpoint: str
    iteration: int
    agent: int
    num_agents: int
    engine: str
    num_envs: int
    seeds: list[int]
    metric: str
    scores: list[float]
    returns: list[float]
    lengths: list[int]
    ended_early: int | None
    """Episodes that ended before their time; None if the task does not tell."""
    succeeded: int | None = None
    """Episodes that were a success; None if the task does not tell."""
    nonfinite: int = 0
    """Environments that were reset because of a number that was not finite."""

    def summary(self) -> dict[str, Any]:
        """Return everything, with mean, spread and interval of the score beside the single episodes."""
        interval = mean_interval(self.scores)
        return {
            **self.__dict__,
            "episodes": len(self.scores),
            "mean": statistics.fmean(self.scores),
            "standard_deviation": deviation(self.scores),
            "interval_95": None if interval is None else list(interval),
            "mean_return": statistics.fmean(self.returns),
            "mean_length": statistics.fmean(self.lengths),
        }


@dataclass(frozen=True)
class Published:
    """A score that a paper prints."""

    method: str
    source: str
    mean: float
    spread: float | None
    spread_kind: str
    steps: float


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean; None for a single value, which has none."""
    if len(values) < 2:
        return None
    low, high = bootstrap_interval(np.asarray(values, dtype=float), statistic=np.mean)
    return float(low), float(high)


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation over episodes; zero for a single one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def published_scores(task: str) -> list[Published]:
    """Return what papers print for a task, paper by paper."""
    import yaml

    content = yaml.safe_load(PUBLISHED.read_text())
    found = []
    for key, methods in content["tasks"].get(task, {}).items():
        source = content["sources"][key]
        for method, (mean, *spread) in methods.items():
            kind = source["spread"] if spread else ""
            found.append(Published(method, source["title"], mean, spread[0] if spread else None, kind, source["steps"]))
    return found


def table(evaluations: Sequence[Evaluation], published: Sequence[Published] = ()) -> str:
    """Return a Markdown table: a row for every evaluation, best agents of a checkpoint first, then the papers."""
    metric = evaluations[0].metric
    header = [name.format(metric="score" if metric == "return" else metric) for name in (*COLUMNS, *MORE_COLUMNS)]
    if metric == "return":
        # the score is the return; one column is enough
        header[5] = "return"
        del header[8]
    rows = [_row(evaluation, metric) for evaluation in _ordered(evaluations)]
    for score in published:
        # standard error or deviation over training runs, not over episodes
        spread = f"{_number(score.spread)} (s.{'e' if 'error' in score.spread_kind else 'd'}. of 5 runs)"
        cells = [f"{score.source}: {score.method}", "", "", "", "", _number(score.mean)]
        rows.append([*cells, spread if score.spread is not None else "", *[""] * (len(header) - 7)])
    return markdown(header, rows)


def _ordered(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    groups = list(dict.fromkeys((e.checkpoint, e.engine) for e in evaluations))

    def rank(e: Evaluation) -> tuple[int, bool, float, float]:
        place = groups.index((e.checkpoint, e.engine))
        return place, e.agent != 0, -statistics.fmean(e.scores), -statistics.fmean(e.returns)

    return sorted(evaluations, key=rank)


def _row(evaluation: Evaluation, metric: str) -> list[str]:
    interval = mean_interval(evaluation.scores)
    cells = [
        evaluation.policy,
        str(evaluation.iteration),
        agent_name(evaluation.agent),
        evaluation.engine,
        str(len(evaluation.scores)),
        _number(statistics.fmean(evaluation.scores)),
        _number(deviation(evaluation.scores)),
        "" if interval is None else f"[{_number(interval[0])}, {_number(interval[1])}]",
        _number(statistics.fmean(evaluation.returns)),
        f"{statistics.fmean(evaluation.lengths):.0f}",
        *(
            "" if count is None else f"{count} ({count / len(evaluation.scores):.0%})"
            for count in (evaluation.ended_early, evaluation.succeeded)
        ),
    ]
    if metric == "return":
        del cells[8]
    return cells


def agent_name(agent: int) -> str:
    """Return how an agent is called in tables."""
    return "master" if agent == 0 else f"follower {agent}"


def write_evaluations(
    path: Path,
    task: str,
    evaluations: Sequence[Evaluation],
    published: Sequence[Published],
    command: str,
    note: str = "",
) -> None:
    """Write everything as JSON; a reader finds the whole file or none."""
    content = {
        "task": task,
        "command": command,
        "protocol": "deterministic policy, whole episodes, equally many of every environment",
        "note": note,
        "evaluations": [evaluation.summary() for evaluation in _ordered(evaluations)],
        "published": [score.__dict__ for score in published],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(content, indent=1) + "\n")


def _number(value: float | None) -> str:
    """Return a number with as many digits as a score needs."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"
