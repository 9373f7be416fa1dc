"""One page about a run that needs nothing but a browser."""

from __future__ import annotations

import base64
import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from epo_lab.evaluation.scores import agent_name

from .record import ITERATION, STEPS, RunRecord

FILE_NAME = "report.html"
MOST_VIDEO_BYTES = 64 << 20
"""Videos beyond that are named, but not embedded."""
TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}


def write_report(run: RunRecord, path: Path, metric: str | None = None) -> None:
    """Write the page.

    Args:
        run: The run.
        path: Where the page goes; a reader finds the whole file or none.
        metric: Tag of the task's metric. Defaults to None.
    """
    from plotly.offline import get_plotlyjs

    from .figures import figures

    sections = [
        (anchor, title, figure.to_html(full_html=False, include_plotlyjs=False, config=_CONFIG) + NOTES.get(anchor, ""))
        for anchor, (title, figure) in figures(run, metric).items()
    ]
    evaluation = _evaluation(run)
    if evaluation:
        sections.insert(1, ("evaluation", "Evaluation", evaluation))
    films = _films(run)
    if films:
        sections.insert(1, ("films", "Films", films))
    sections.append(("settings", "Settings", _settings(run)))
    sections.append(("environment", "Environment", _environment(run)))
    links = "".join(f'<a href="#{anchor}">{html.escape(title)}</a>' for anchor, title, _ in sections)
    body = "".join(
        f'<section id="{anchor}"><h2>{html.escape(title)}</h2>{content}</section>'
        for anchor, title, content in sections
    )
    task = html.escape(str(run.manifest.get("task", run.folder.parent.name)))
    page = _PAGE.format(
        title=f"{task} {html.escape(run.folder.name)}",
        task=task,
        name=html.escape(run.folder.name),
        cards=_cards(run, metric),
        links=links,
        body=body,
        script=get_plotlyjs(),
        style=_STYLE,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(page)
    os.replace(scratch, path)


NOTES = {
    "learning": "<p>Fitness is measured while training, with exploration. Curves are moving means.</p>",
    "generations": "<p>A generation replaces the worst followers when the spread exceeds the threshold, or after too"
    " long a pause.</p>",
    "family": "<p>A bar is the life of a gene, its number inside; hover for its parents. Colour is the last known"
    " fitness.</p>",
    "genes": "<p>Neighbours on the map need not act alike: the divergences below tell how policies differ.</p>",
    "divergence": "<p>KL(i || j) between policies in the same states. The master learns little from agents beyond"
    " about 1.</p>",
    "sharing": "<p>Effective sample size: share of own and relabelled samples that count; 1 if all policies are"
    " equal.</p>",
}


def _cards(run: RunRecord, metric: str | None) -> str:
    """Return the numbers at the top."""
    seconds = np.nansum(run.curves.get("Perf/collection_time", [0.0])) + np.nansum(
        run.curves.get("Perf/learning_time", [0.0])
    )
    cards = {
        "agent": str(run.manifest.get("metadata", {}).get("agent", "")).removeprefix("rsl_rl_").split("_cfg_entry")[0],
        "agents": str(run.num_agents),
        "iterations": f"{int(run.curves[ITERATION][-1]) + 1:,}",
        "environment steps": _short(run.curves.get(STEPS, np.array([0.0]))[-1]),
        "computing time": f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min",
        "generations": str(len(run.lineage)) if run.num_agents > 1 else "",
    }
    for name, tag in (("master's fitness", "Master/fitness"), (str(metric).rpartition("/")[2], metric or "")):
        values = run.curve(tag)[1]
        if len(values):
            cards[f"{name}, last tenth"] = f"{values[-max(1, len(values) // 10) :].mean():.4g}"
    if cards["agent"] in ("", "cfg_entry_point"):
        cards["agent"] = "default"
    shown = {name: value for name, value in cards.items() if value}
    return "".join(
        f"<div><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>" for name, value in shown.items()
    )


def _evaluation(run: RunRecord) -> str:
    rows = run.evaluation.get("evaluations", [])
    if not rows:
        return ""
    header = ("policy", "iteration", "agent", "engine", "episodes", rows[0]["metric"], "spread", "95 % interval")
    lines = [
        (
            row["policy"],
            row["iteration"],
            agent_name(row["agent"]),
            row["engine"],
            row["episodes"],
            f"{row['mean']:.4g}",
            f"{row['standard_deviation']:.3g}",
            "" if row["interval_95"] is None else "{:.4g} to {:.4g}".format(*row["interval_95"]),
        )
        for row in rows
    ]
    lines += [
        (f"{row['source']}: {row['method']}", "", "", "", "", f"{row['mean']:.4g}", _spread(row), "")
        for row in run.evaluation.get("published", [])
    ]
    note = "<p>Deterministic policy, whole episodes. The interval is that of this policy's mean, not of training.</p>"
    return _table(header, lines) + note


def _spread(row: dict[str, Any]) -> str:
    return "" if row["spread"] is None else f"{row['spread']:.3g} ({row['spread_kind']} of 5 runs)"


def _films(run: RunRecord) -> str:
    """Return the videos as parts of the page, for as long as they fit."""
    parts, total = [], 0
    for path in [*run.videos, *run.pictures]:
        total += path.stat().st_size
        name = html.escape(path.name)
        if total > MOST_VIDEO_BYTES:
            parts.append(f"<figure><figcaption>{name} is too large to embed</figcaption></figure>")
            continue
        source = f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
        shown = (
            f'<video controls loop muted src="{source}"></video>'
            if path.suffix == ".mp4"
            else f'<img alt="{name}" src="{source}">'
        )
        parts.append(f"<figure>{shown}<figcaption>{name}</figcaption></figure>")
    return f'<div class="films">{"".join(parts)}</div>' if parts else ""


def _settings(run: RunRecord) -> str:
    return "".join(
        f"<details><summary>{html.escape(name)}.yaml</summary><pre>{html.escape(text)}</pre></details>"
        for name, text in run.settings.items()
    )


def _environment(run: RunRecord) -> str:
    facts = [("created", str(run.manifest.get("created_at", ""))), ("git commit", run.commit)]
    facts += list(run.environment.items())
    commands = "\n".join(run.commands)
    known = "" if run.environment else "<p>Versions were not recorded with this run.</p>"
    return _table((), [fact for fact in facts if fact[1]]) + known + f"<pre>{html.escape(commands)}</pre>"


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    head = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _short(number: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


_CONFIG = {"displaylogo": False, "responsive": True}
_STYLE = """
:root { --ink: #1f2733; --dim: #6b7480; --line: #e3e7ed; --page: #f5f7fa; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
header, main { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 26px; }
h1 { font-size: 24px; margin: 0; } h1 small { display: block; font-size: 14px; font-weight: 400; color: var(--dim); }
h2 { font-size: 17px; margin: 0 0 8px; }
nav { position: sticky; top: 0; z-index: 5; background: var(--page); border-bottom: 1px solid var(--line); }
nav div { max-width: 1180px; margin: 0 auto; padding: 10px 20px; display: flex; flex-wrap: wrap; gap: 4px 18px; }
nav a { color: #2f5d9b; text-decoration: none; font-size: 14px; } nav a:hover { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 10px; margin: 18px 0; }
.cards div { background: white; border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.cards b { display: block; font-size: 19px; } .cards span { color: var(--dim); font-size: 13px; }
section { background: white; border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px; margin: 18px 0;
  scroll-margin-top: 60px; overflow-x: auto; }
section p { color: var(--dim); font-size: 13px; margin: 6px 0 0; }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); } th { color: var(--dim); }
pre { font-size: 12px; overflow: auto; max-height: 480px; background: var(--page); padding: 10px; border-radius: 6px; }
summary { cursor: pointer; padding: 4px 0; }
.films { display: flex; flex-wrap: wrap; gap: 14px; } figure { margin: 0; }
figcaption { color: var(--dim); font-size: 13px; }
.films img, .films video { max-width: 540px; width: 100%; border-radius: 6px; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style><script>{script}</script></head>
<body>
<header><h1>{task}<small>{name}</small></h1><div class="cards">{cards}</div></header>
<nav><div>{links}</div></nav>
<main>{body}</main>
</body>
</html>
"""
