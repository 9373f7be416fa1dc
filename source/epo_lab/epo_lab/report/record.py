"""Read everything that a run folder tells."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from epo_lab.base.errors import UserError
from epo_lab.evaluation.scores import FILE_NAME as EVALUATION_NAME
from epo_lab.runner import environment
from epo_lab.runner.aside import count
from epo_lab.runner.checkpoint import read_checkpoint
from epo_lab.runner.curves import damaged_rows, read_curves
from epo_lab.runner.folder import CENSUS, CURVES, LINEAGE, checkpoints, parse_settings, read_manifest
from epo_lab.runner.records import damaged_records, read_records

ITERATION, STEPS = "iteration", "Perf/total_steps"
EXCHANGES = "pbt.jsonl"
VIDEOS = (".mp4", ".gif")
EVALUATED = {"metric", "policy", "agent", "mean", "standard_deviation", "interval_95", "mean_return", "mean_length"}
"""What the page shows of an evaluation, besides names and counts."""
_COMMIT = re.compile(r"--- git commit ---\n(\w+)")


@dataclass
class RunRecord:
    """A run as its folder tells it; parts that are missing are empty."""

    folder: Path
    manifest: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, np.ndarray] = field(default_factory=dict)
    """Every logged scalar over the iterations; NaN where nothing was logged."""
    lineage: list[dict[str, Any]] = field(default_factory=list)
    policies: bool = False
    """Whether agents are policies with networks of their own, none of which is the master (PBT)."""
    census: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """Text of the resolved configs, by name."""
    commands: list[str] = field(default_factory=list)
    commit: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    evaluation: dict[str, Any] = field(default_factory=dict)
    videos: list[Path] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """What could not be read, a line for each file."""

    def curve(self, tag: str) -> tuple[np.ndarray, np.ndarray]:
        """Return environment steps (iterations if they were not logged) and values where a scalar was logged."""
        values = self.curves.get(tag, np.array([]))
        known = np.isfinite(values)
        x = self.curves.get(STEPS, self.curves.get(ITERATION, values))
        return x[known], values[known]

    def steps_at(self, iterations: np.ndarray | list[int]) -> np.ndarray:
        """Return the environment steps that belong to iterations."""
        known = self.curves[ITERATION]
        return np.asarray(np.interp(iterations, known, self.curves.get(STEPS, known)))

    def hours(self) -> np.ndarray:
        """Return the computing time until the end of each iteration [h]; pauses between resumed parts do not count."""
        seconds = [
            np.nan_to_num(self.curves.get(f"Perf/{name}_time", np.zeros(1))) for name in ("collection", "learning")
        ]
        return np.cumsum(sum(seconds) + np.zeros(len(self.curves[ITERATION]))) / 3600.0

    @property
    def agent(self) -> str:
        """Name of the agent as users call it."""
        name = str(self.manifest.get("metadata", {}).get("agent", ""))
        return name.removeprefix("rsl_rl_").removesuffix("cfg_entry_point").rstrip("_")

    def name_of(self, slot: int) -> str:
        """Return the name of an agent."""
        return f"policy {slot}" if self.policies else "master" if slot == 0 else f"agent {slot}"

    @property
    def asked_for(self) -> dict[str, str]:
        """What the command line changed of the agent's preset, by name."""
        request = dict(self.manifest.get("request", {}))
        tokens = request.pop("overrides", None)
        if tokens is None:
            # runs from before the request was kept
            words = self.commands[0].split() if self.commands else []
            tokens = [word for word in words if "=" in word and not word.startswith("-")]
        changed = {token.partition("=")[0]: token.partition("=")[2] for token in tokens if "=" in token}
        return {**{f"--{name}": str(value) for name, value in request.items()}, **changed}

    @cached_property
    def population(self) -> int:
        """Number of agents that the settings name; one if they name none."""
        named = flat_settings(self).get("agent.algorithm.num_agents", "")
        return int(named) if named.isdecimal() else self.num_agents

    @property
    def generations(self) -> int:
        """Number of generations that took place, also of methods that keep no family tree."""
        _, counted = self.curve("Generation/events")
        return len(self.lineage) or (int(counted[-1]) if len(counted) else 0)

    @property
    def num_agents(self) -> int:
        """Number of agents of which each is known by itself; one if nothing is."""
        first = (self.census or self.lineage or [{"fitness": [None]}])[0]
        return len(first["fitness"])


def read_exchanges(path: Path) -> list[dict[str, Any]]:
    """Return the changes of population-based training as generations: who took over weights is a child of the donor."""
    events: list[dict[str, Any]] = []
    ids: list[int] = []
    for record in read_records(path):
        ids = ids or list(range(len(record["objectives"])))
        before, children = list(ids), []
        for change in record["changes"]:
            if change["weights_from"] != change["policy"]:
                ids[change["policy"]] = max(ids) + 1
                parent = before[change["weights_from"]]
                children.append({"slot": change["policy"], "id": ids[change["policy"]], "parent_ids": [parent]})
        known = [value if value is not None and math.isfinite(value) else None for value in record["objectives"]]
        events.append({ITERATION: record[ITERATION], "fitness": known, "children": children})
    return events


def read_census(path: Path) -> list[dict[str, Any]]:
    """Return the censuses of a run, without those whose lists are no tables of numbers any more."""

    def whole(values: Any) -> bool:
        try:
            return np.array(values, dtype=float).ndim > 0
        except (TypeError, ValueError):
            return False

    records = read_records(path)
    return [record for record in records if all(whole(value) for value in record.values() if isinstance(value, list))]


def read_population(folder: Path) -> RunRecord:
    """Read only what a run tells about its population."""
    return RunRecord(folder, lineage=read_records(folder / LINEAGE), census=read_census(folder / CENSUS))


def read_run(folder: Path) -> RunRecord:
    """Read a run folder."""
    if not (folder / CURVES).is_file():
        raise UserError(f"{folder} is no run folder ({CURVES} is missing): name one, such as logs/rsl_rl/<task>/<time>")
    git = sorted((folder / "git").glob("*.diff"))
    found = _COMMIT.search(git[0].read_text(errors="replace")) if git else None
    films, lineage, exchanges = folder / "videos", read_records(folder / LINEAGE), read_exchanges(folder / EXCHANGES)
    lost = {CURVES: damaged_rows(folder / CURVES)} | {n: damaged_records(folder / n) for n in (LINEAGE, CENSUS)}
    damaged = [f"{folder / name}: {count(lines)} left out" for name, lines in lost.items() if lines]
    return RunRecord(
        folder=folder,
        manifest=read_manifest(folder),
        curves=_read_curves(folder / CURVES),
        lineage=lineage or exchanges,
        policies=bool(exchanges),
        census=read_census(folder / CENSUS),
        settings={path.stem: _text(path) for path in sorted((folder / "params").glob("*.yaml"))},
        commands=_text(folder / "command.txt").splitlines(),
        commit=found[1] if found else "",
        environment=_read_json(folder / environment.FILE_NAME, damaged),
        evaluation=_read_json(folder / EVALUATION_NAME, damaged),
        videos=sorted(path for path in films.glob("*") if path.suffix in VIDEOS),
        pictures=sorted(films.glob("*.png")),
        damaged=damaged,
    )


def genes_over_time(run: RunRecord) -> list[tuple[int, np.ndarray]]:
    """Return iteration and genes of all agents, shape (K, L), from the censuses, or else from the checkpoints."""
    found = [(record[ITERATION], np.array(record["genes"])) for record in run.census if "genes" in record]
    if found or run.policies or run.num_agents < 2:
        return found
    for path in checkpoints(run.folder):
        try:
            content = read_checkpoint(path)
        except UserError:
            continue
        genes = content.get("actor_state_dict", {}).get("genes")
        if genes is not None:
            found.append((int(content["iter"]) + 1, genes.float().numpy()))
    return found


def gene_places(run: RunRecord) -> tuple[list[int], list[np.ndarray], np.ndarray] | None:
    """Return iterations, the genes' places on the first two principal axes, each of shape (K, 2), and the axes' shares.

    None if nothing is known about genes, or they have one dimension.
    """
    history = genes_over_time(run)
    if not history or history[-1][1].shape[1] < 2:
        return None
    mean, axes, shares = principal_axes(np.concatenate([genes for _, genes in history]))
    return [iteration for iteration, _ in history], [(genes - mean) @ axes.T for _, genes in history], shares


def principal_axes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, the first two principal directions, shape (2, L), and the share of the variance they explain.

    Args:
        points: One row a gene. Shape is (n, L).
    """
    mean = points.mean(axis=0)
    _, sizes, directions = np.linalg.svd(points - mean, full_matrices=False)
    total = max(float((sizes**2).sum()), 1e-300)
    pad = max(0, 2 - len(directions))
    directions = np.vstack([directions[:2], np.zeros((pad, points.shape[1]))])
    shares = np.concatenate([sizes[:2] ** 2 / total, np.zeros(pad)])
    # the sign of an axis is arbitrary; this choice is the same for the same data on every machine
    signs = np.sign(directions[np.arange(2), np.abs(directions).argmax(axis=1)])
    return mean, directions * np.where(signs == 0, 1.0, signs)[:, None], shares


def lives(run: RunRecord) -> list[dict[str, Any]]:
    """Return every gene's slot, birth, death (None: alive), parents and last known fitness, from the lineage."""
    genes = {
        slot: {"id": slot, "slot": slot, "birth": 0, "death": None, "parents": [], "fitness": None}
        for slot in range(run.num_agents)
    }
    done = []
    for event in run.lineage:
        for slot, value in enumerate(event["fitness"]):
            genes[slot]["fitness"] = genes[slot]["fitness"] if value is None else value
        for child in event["children"]:
            old = genes[child["slot"]]
            done.append({**old, "death": event[ITERATION]})
            genes[child["slot"]] = {
                "id": child["id"],
                "slot": child["slot"],
                "birth": event[ITERATION],
                "death": None,
                "parents": child["parent_ids"],
                "fitness": None,
            }
    if run.census:
        for slot, value in enumerate(run.census[-1]["fitness"]):
            if genes[slot]["id"] == run.census[-1]["gene_id"][slot] and value is not None:
                genes[slot]["fitness"] = value
    return sorted([*done, *genes.values()], key=lambda life: (life["birth"], life["slot"]))


def fitness_over_time(run: RunRecord) -> list[tuple[int, list[int], list[float | None]]]:
    """Return iteration, genes and fitness of all agents whenever they were known: at generations and censuses."""
    found = {}
    genes = list(range(run.num_agents))
    for event in run.lineage:
        found[event[ITERATION]] = (list(genes), event["fitness"])
        for child in event["children"]:
            genes[child["slot"]] = child["id"]
    for record in run.census:
        # at a generation the census looks after the children were born
        if record[ITERATION] not in found and "gene_id" in record:
            found[record[ITERATION]] = (record["gene_id"], record["fitness"])
    return [(iteration, *found[iteration]) for iteration in sorted(found)]


def flat_settings(run: RunRecord) -> dict[str, str]:
    """Return every setting of a run by its path, as text."""
    flat: dict[str, str] = {}

    def walk(node: Any, path: str) -> None:
        if isinstance(node, dict) and node:
            for name, value in node.items():
                walk(value, f"{path}.{name}")
        else:
            flat[path] = str(node)

    for name, text in run.settings.items():
        try:
            walk(parse_settings(text), name)
        except UserError:
            flat[name] = "damaged"
    return flat


def _read_curves(path: Path) -> dict[str, np.ndarray]:
    columns, rows = read_curves(path)
    if not rows:
        raise UserError(f"{path} has no row that can be read: the run has not finished an iteration, or it is damaged")
    return {tag: np.array([float(row.get(tag) or "nan") for row in rows]) for tag in columns}


def _read_json(path: Path, damaged: list[str]) -> dict[str, Any]:
    """Return what a file holds; nothing, and a line more about damage, if that is not what was written."""
    try:
        content = json.loads(_text(path) or "{}")
        rows = content.get("evaluations", [])
        whole = all(row.keys() >= EVALUATED for row in rows)
    except (ValueError, AttributeError, TypeError):
        whole = False
    if not whole:
        damaged.append(f"{path}: damaged, left out")
        return {}
    return content


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
