"""One page about a run that needs nothing but a browser."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

import numpy as np

from epo_lab.base.files import replace_text
from epo_lab.evaluation.scores import agent_name

from .record import ITERATION, STEPS, RunRecord
from .story import duration, story

FILE_NAME = "report.html"
MOST_ROWS = 15
"""Settings that differ between runs, beyond which their table is folded up."""
MOST_VIDEO_BYTES = 64 << 20
"""Videos beyond that are named, but not embedded."""
TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}


def write_report(runs: list[RunRecord], path: Path, metric: str | None = None) -> None:
    """Write the page; a reader finds the whole file or none.

    Args:
        runs: One run, or several to stand beside each other.
        path: Where the page goes.
        metric: Tag of the task's metric. Defaults to None.
    """
    from plotly.offline import get_plotlyjs

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, make_page(runs, metric, script=f"<script>{get_plotlyjs()}</script>"))


def make_page(runs: list[RunRecord], metric: str | None, script: str, live: str = "") -> str:
    """Return the page as text.

    Args:
        runs: One run, or several.
        metric: Tag of the task's metric.
        script: Tag that brings plotly.
        live: More script, for a page that follows a run. Defaults to none.
    """
    if len(runs) == 1:
        run = runs[0]
        task, name = str(run.manifest.get("task", run.folder.parent.name)), run.folder.name
        top = f'<ol class="story">{"".join(f"<li>{html.escape(line)}</li>" for line in story(run))}</ol>'
        top += f'<div class="cards">{_cards(run, metric)}</div>'
        sections = _sections(run, metric)
    else:
        task = ", ".join(dict.fromkeys(str(run.manifest.get("task", "")) for run in runs))
        name, top = f"{len(runs)} runs", ""
        sections = _several(runs, metric)
    links = "".join(f'<a href="#{anchor}">{html.escape(title)}</a>' for anchor, title, _ in sections)
    return _PAGE.format(
        title=html.escape(f"{task} {name}"),
        task=html.escape(task),
        name=html.escape(name),
        top=top,
        links=links,
        body=_body(sections),
        script=script,
        live=_SCRIPT + live,
        style=_STYLE,
    )


Section = tuple[str, str, str]
"""Anchor, title and content of a part of the page."""


def _body(sections: list[Section]) -> str:
    return "".join(
        f'<section id="{anchor}"><h2>{html.escape(title)}</h2>{content}</section>'
        for anchor, title, content in sections
    )


def _sections(run: RunRecord, metric: str | None) -> list[Section]:
    """Return everything about one run."""
    from .figures import figures

    sections = [
        (anchor, title, _panels(panels) + NOTES.get(anchor, ""))
        for anchor, (title, panels) in figures(run, metric).items()
    ]
    for anchor, title, content in (("evaluation", "Evaluation", _evaluation(run)), ("films", "Films", _films(run))):
        if content:
            sections.insert(1, (anchor, title, content))
    sections.append(("settings", "Settings", _settings(run)))
    sections.append(("environment", "Environment", _environment(run)))
    return sections


def _several(runs: list[RunRecord], metric: str | None) -> list[Section]:
    """Return several runs beside each other, and below them each by itself, folded up."""
    from .several import SUMMARY, differing, summary_rows, together

    rows = [(setting, *values) for setting, values in differing(runs).items()]
    names = ("setting", *(run.folder.name for run in runs))
    sections = [
        ("together", "Together", _panels([together(runs)]) + NOTES["together"]),
        ("runs", "The runs", _table(SUMMARY, summary_rows(runs))),
        ("differences", "Settings that differ", _folded(_table(names, rows), len(rows))),
    ]
    for number, run in enumerate(runs):
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in story(run))
        inside = [(f"{anchor}-{number}", title, content) for anchor, title, content in _sections(run, metric)]
        content = f'<ol class="story">{lines}</ol><details><summary>everything</summary>{_body(inside)}</details>'
        sections.append((f"run-{number}", f"{run.agent} {run.folder.name}".strip(), content))
    return sections


def _folded(table: str, rows: int) -> str:
    """Return a table, folded up if it is long: agents of different kinds differ in everything."""
    if not rows:
        return "<p>None but the folder.</p>"
    return f"<details><summary>{rows} settings</summary>{table}</details>" if rows > MOST_ROWS else table


def _panels(panels: list[Any]) -> str:
    """Return figures as parts of the page; several stand side by side where there is room."""
    parts = [panel.to_html(full_html=False, include_plotlyjs=False, config=_CONFIG) for panel in panels]
    return (
        parts[0] if len(parts) == 1 else f'<div class="panels">{"".join(f"<div>{part}</div>" for part in parts)}</div>'
    )


NOTES = {
    "learning": "<p>Fitness is measured while training, with exploration. Curves are moving means. Above: computing"
    " time, without pauses.</p>",
    "generations": "<p>A generation replaces the worst followers when the spread exceeds the threshold, or after too"
    " long a pause.</p>",
    "together": "<p>Moving means of the fitness of the master, or of the best, or of the mean reward. Runs that"
    " differ only in their seed have one colour; the thick line is their mean.</p>",
    "agents": "<p>As it was known at generations and censuses. A line ends where its gene was replaced; hover"
    " to see whose it is.</p>",
    "rewards": "<p>Sum of each term over an episode, divided by the episode's length in seconds.</p>",
    "teachers": "<p>The master learns from followers that act like it (dark) and gains from those that are better"
    " (star): a dark field with a star is a good teacher.</p>",
    "family": "<p>A bar is the life of a gene, its number at its birth; hover for its parents. Colour is the fitness"
    " as it was measured at the end of each stretch.</p>",
    "genes": "<p>Neighbours on the map need not act alike: the divergences below tell how policies differ.</p>",
    "divergence": "<p>KL(i || j) between policies in the same states. The master learns little from agents beyond"
    " about 1.</p>",
    "sharing": "<p>Effective sample size: share of own and relabelled samples that count; 1 if all policies are"
    " equal.</p>",
}


def _cards(run: RunRecord, metric: str | None) -> str:
    """Return the numbers at the top."""
    cards = {
        "agent": run.agent or "not named",
        "agents": str(run.population),
        "iterations": f"{int(run.curves[ITERATION][-1]) + 1:,}",
        "environment steps": _short(run.curves.get(STEPS, np.array([0.0]))[-1]),
        "computing time": duration(run.hours()[-1]),
        "generations": str(run.generations) if run.population > 1 else "",
    }
    whose = " of all agents" if run.population > 1 else ""
    tags = {f"{tag.rpartition('/')[2]}{whose}": tag for tag in (metric or "", "Metrics/success_rate")}
    for name, tag in {"master's fitness": "Master/fitness", **tags}.items():
        values = run.curve(tag)[1]
        if len(values):
            cards[f"{name}, last tenth"] = f"{values[-max(1, len(values) // 10) :].mean():.4g}"
    shown = {name: value for name, value in cards.items() if value}
    return "".join(
        f"<div><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>" for name, value in shown.items()
    )


def _evaluation(run: RunRecord) -> str:
    rows = run.evaluation.get("evaluations", [])
    if not rows:
        return ""
    metric = rows[0]["metric"]
    # successes may all be zero: the return then tells agents apart
    more = () if metric == "return" else ("return",)
    told = ("succeeded",) if any(row.get("succeeded") is not None for row in rows) else ()
    end = (*more, "length", *told)
    header = ("policy", "iteration", "agent", "engine", "episodes", metric, "spread", "95 % interval", *end)
    lines = [
        (
            row["policy"],
            row.get("iteration", ""),
            agent_name(row["agent"]),
            row.get("engine", ""),
            row.get("episodes", ""),
            f"{row['mean']:.4g}",
            f"{row['standard_deviation']:.3g}",
            "" if row["interval_95"] is None else "{:.4g} to {:.4g}".format(*row["interval_95"]),
            *(f"{row['mean_return']:.4g}" for _ in more),
            f"{row['mean_length']:.0f}",
            *(row.get("succeeded") for _ in told),
        )
        for row in rows
    ]
    empty = ("",) * (len(end) + 1)
    lines += [
        (f"{row['source']}: {row['method']}", "", "", "", "", f"{row['mean']:.4g}", _spread(row), *empty)
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
    asked = list(run.asked_for.items())
    changed = _table(("changed by the command", "value"), asked) if asked else "<p>The preset, unchanged.</p>"
    return changed + "".join(
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


_CONFIG = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "responsive": True,
    # what is in the page stays there: no button that sends a figure to somebody's server
    "showSendToCloud": False,
    "toImageButtonOptions": {"format": "svg", "scale": 1},
}
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
.story { margin: 16px 0 0; padding: 14px 18px 14px 38px; background: white; border: 1px solid var(--line);
  border-left: 4px solid #d1495b; border-radius: 8px; }
section .story { border: 0; padding-left: 22px; margin: 0 0 8px; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); gap: 8px; }
.panels > div { min-width: 0; }
.cards { display: grid; grid-template-columns: repeat(4, 1fr); gap: 10px; margin: 18px 0; }
.cards div { background: white; border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.cards b { display: block; font-size: 19px; } .cards span { color: var(--dim); font-size: 13px; }
section { background: white; border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px; margin: 18px 0;
  scroll-margin-top: 60px; overflow-x: auto; }
section p { color: var(--dim); font-size: 13px; margin: 6px 0 0; }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
td:first-child { white-space: nowrap; }
td, th { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); } th { color: var(--dim); }
pre { font-size: 12px; overflow: auto; max-height: 480px; background: var(--page); padding: 10px; border-radius: 6px; }
summary { cursor: pointer; padding: 4px 0; }
.films { display: flex; flex-wrap: wrap; gap: 14px; } figure { margin: 0; }
figcaption { color: var(--dim); font-size: 13px; }
.films img, .films video { max-width: 540px; width: 100%; border-radius: 6px; }
main { padding-bottom: 1px; }
@media (max-width: 600px) {
  header, main { padding-left: 8px; padding-right: 8px; } section { padding: 12px 8px; }
  nav div { flex-wrap: nowrap; overflow-x: auto; white-space: nowrap; padding: 8px; }
  .modebar { display: none !important; } .cards { grid-template-columns: repeat(2, 1fr); } td, th { padding: 4px 6px; }
}
@page { size: A3; margin: 12mm; }
@media print {
  nav, .modebar { display: none !important; } body { background: white; }
  section { break-inside: avoid; border: 0; overflow: visible; }
  pre { max-height: none; white-space: pre-wrap; }
}
"""
_SCRIPT = """
// a figure that was folded up has no size until it is seen
document.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")), true);
// a narrow page has no room for a bar of colours or a legend beside the axes
function fit() {
  const narrow = window.innerWidth < 600;
  document.querySelectorAll(".js-plotly-plot").forEach(plot => Plotly.relayout(plot, {
    "margin.l": narrow ? 42 : plot.layout.margin.l, "margin.r": narrow ? 6 : plot.layout.margin.r,
    "legend.font.size": narrow ? 10 : 13, "font.size": narrow ? 11 : 13 }));
}
if (window.innerWidth < 600) window.addEventListener("load", fit);
"""
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style>{script}</head>
<body>
<header><h1>{task}<small>{name}</small></h1>{top}</header>
<nav><div>{links}</div></nav>
<main>{body}</main>
<script>{live}</script>
</body>
</html>
"""
