"""The figures of a run's report, with plotly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .record import ITERATION, RunRecord, gene_places, lives

MASTER, BEST, BAND, EVENT = "#d1495b", "#2e7d6b", "#4c78a8", "#8a8f98"
SCALE = "Viridis"
MOST_POINTS = 1500
"""Points of a curve; more are averaged in groups."""
MOST_FRAMES = 12
"""Censuses among which the slider of the divergences chooses."""
SMOOTHED = 40
"""Width of the moving mean over noisy curves, as a share of their length: one fortieth."""


def figures(run: RunRecord, metric: str | None) -> dict[str, tuple[str, go.Figure]]:
    """Return title and figure of every section that the run has data for, by its anchor.

    Args:
        run: The run.
        metric: Tag of the task's metric.
    """
    makers: dict[str, tuple[str, Callable[[], go.Figure | None]]] = {
        "learning": ("Learning", lambda: learning(run)),
        "task": ("The task", lambda: small_multiples(run, _task_tags(run, metric))),
        "generations": ("Generations", lambda: generations(run)),
        "family": ("Family tree of the genes", lambda: family_tree(run)),
        "genes": ("Map of the genes", lambda: gene_map(run)),
        "divergence": ("Divergence between agents", lambda: divergence(run)),
        "sharing": ("What the master can use of the others' data", lambda: small_multiples(run, SHARING)),
        "optimizer": ("Optimizer and speed", lambda: small_multiples(run, OPTIMIZER)),
    }
    made = {anchor: (title, make()) for anchor, (title, make) in makers.items()}
    return {anchor: (title, figure) for anchor, (title, figure) in made.items() if figure is not None}


SHARING = (
    "Population/effective_sample_size",
    "Population/kl_to_master",
    "Population/is_deviation",
    "Population/kl_pairwise",
    "Population/gradient_cosine",
    "Population/gene_spread",
)
OPTIMIZER = (
    "Loss/value",
    "Loss/surrogate",
    "Loss/entropy",
    "Loss/learning_rate",
    "Policy/mean_std",
    "Perf/total_fps",
)


def learning(run: RunRecord) -> go.Figure:
    """Master, best follower and the band of the population, or the mean reward of a single agent."""
    figure = _figure(430, "environment steps", "fitness")
    low, high = (_smooth(*run.curve(f"Population/fitness_{name}")) for name in ("min", "max"))
    if len(low[1]):
        quarter, three = (_smooth(*run.curve(f"Population/fitness_{name}")) for name in ("q25", "q75"))
        _band(figure, low, high, "all followers", 0.12)
        _band(figure, quarter, three, "middle half", 0.25)
        _line(figure, _smooth(*run.curve("Population/fitness_median")), "median follower", BAND, dash="dot")
        _line(figure, high, "best follower", BEST)
    master = run.curve("Master/fitness")
    if len(master[1]):
        _line(figure, _smooth(*master), "master", MASTER, width=2.5)
    else:
        _line(figure, _smooth(*run.curve("Train/mean_reward")), "mean reward", MASTER, width=2.5)
        figure.update_yaxes(title_text="return of the last 100 episodes")
    for event in run.lineage:
        x = float(run.steps_at([event[ITERATION]])[0])
        figure.add_vline(x=x, line={"color": EVENT, "width": 1, "dash": "dot"}, opacity=0.6)
    if run.lineage:
        figure.add_trace(_legend_only("generation", EVENT, dash="dot"))
    return figure


def generations(run: RunRecord) -> go.Figure | None:
    """Every event: how far the followers were apart, what they had to exceed, and who was replaced."""
    if not run.lineage:
        return None
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.55, 0.45], vertical_spacing=0.06)
    iterations = [event[ITERATION] for event in run.lineage]
    for number, event in enumerate(run.lineage):
        values = [np.nan if value is None else value for value in event["fitness"]]
        replaced = {child["slot"] for child in event["children"]}
        kinds = [
            "master" if slot == 0 else "replaced" if slot in replaced else "survives" for slot in range(len(values))
        ]
        for kind, color, symbol in (
            ("survives", BEST, "circle"),
            ("replaced", EVENT, "x"),
            ("master", MASTER, "diamond"),
        ):
            chosen = [slot for slot, name in enumerate(kinds) if name == kind]
            figure.add_trace(
                go.Scatter(
                    x=[iterations[number]] * len(chosen),
                    y=[values[slot] for slot in chosen],
                    text=[f"agent {slot}" for slot in chosen],
                    mode="markers",
                    name=kind,
                    legendgroup=kind,
                    showlegend=number == 0,
                    marker={"color": color, "symbol": symbol, "size": 8, "opacity": 0.85},
                ),
                row=1,
                col=1,
            )
    for name, color, key in (("spread of the followers", BAND, "spread"), ("threshold", MASTER, "threshold")):
        values = [event[key] for event in run.lineage]
        line = go.Scatter(x=iterations, y=values, name=name, mode="lines+markers", line={"color": color})
        figure.add_trace(line, row=2, col=1)
    _style(figure, 470, "", "fitness at the event")
    figure.update_yaxes(title_text="spread", row=2, col=1)
    figure.update_xaxes(title_text="iteration", row=2, col=1)
    return figure


def family_tree(run: RunRecord) -> go.Figure | None:
    """A bar for every gene in the row of its agent, and lines from its parents to its birth."""
    if run.num_agents < 2:
        return None
    figure = _figure(max(320, 26 * run.num_agents + 120), "iteration", "agent")
    end = int(run.curves[ITERATION][-1]) + 1
    all_lives = lives(run)
    by_id = {life["id"]: life for life in all_lives}
    known = [life["fitness"] for life in all_lives if life["fitness"] is not None]
    links_x: list[float | None] = []
    links_y: list[float | None] = []
    for life in all_lives:
        for parent in life["parents"]:
            links_x += [life["birth"] - 0.008 * end, life["birth"] + 0.008 * end, None]
            links_y += [by_id[parent]["slot"], life["slot"], None]
    figure.add_trace(
        go.Bar(
            orientation="h",
            base=[life["birth"] for life in all_lives],
            x=[(end if life["death"] is None else life["death"]) - life["birth"] for life in all_lives],
            y=[life["slot"] for life in all_lives],
            width=0.62,
            marker={
                "color": [np.nan if life["fitness"] is None else life["fitness"] for life in all_lives],
                "colorscale": SCALE,
                "cmin": min(known, default=0.0),
                "cmax": max(known, default=1.0),
                "colorbar": {"title": "fitness", "thickness": 12},
                "line": {"color": "white", "width": 1.5},
            },
            text=[f"{life['id']}" for life in all_lives],
            textposition="inside",
            insidetextanchor="start",
            hovertext=[_life_text(life) for life in all_lives],
            hoverinfo="text",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=links_x,
            y=links_y,
            mode="lines",
            line={"color": "#1f2733", "width": 1},
            name="parent to child",
            hoverinfo="skip",
            opacity=0.55,
        )
    )
    names = ["master", *map(str, range(1, run.num_agents))]
    figure.update_yaxes(tickvals=list(range(run.num_agents)), ticktext=names, autorange="reversed", showgrid=False)
    figure.update_layout(barmode="overlay")
    return figure


def gene_map(run: RunRecord) -> go.Figure | None:
    """All genes on the first two principal axes: where they are, and the way that each agent's went."""
    found = gene_places(run)
    if found is None:
        return None
    iterations, places, shares = found
    figure = _figure(480, f"first axis ({shares[0]:.0%} of the variance)", f"second axis ({shares[1]:.0%})")
    for slot in range(len(places[-1])):
        path_x: list[float | None] = []
        path_y: list[float | None] = []
        for number, iteration in enumerate(iterations):
            # a gene that was born since is not the continuation of the one before it
            since = iterations[number - 1] if number else iteration
            if any(since < birth <= iteration for birth in _births_of(run, slot)):
                path_x.append(None)
                path_y.append(None)
            path_x.append(float(places[number][slot, 0]))
            path_y.append(float(places[number][slot, 1]))
        line = {"color": MASTER if slot == 0 else "#b8c0cc", "width": 1.2}
        figure.add_trace(go.Scatter(x=path_x, y=path_y, mode="lines", line=line, hoverinfo="skip", showlegend=False))
    fitness = run.census[-1]["fitness"] if run.census else [None] * len(places[-1])
    figure.add_trace(
        go.Scatter(
            x=places[-1][:, 0],
            y=places[-1][:, 1],
            mode="markers+text",
            text=["master", *map(str, range(1, len(places[-1])))],
            textposition="top center",
            showlegend=False,
            marker={
                "color": [np.nan if value is None else value for value in fitness],
                "colorscale": SCALE,
                "colorbar": {"title": "fitness", "thickness": 12},
                "size": [18] + [13] * (len(places[-1]) - 1),
                "symbol": ["star"] + ["circle"] * (len(places[-1]) - 1),
                "line": {"color": "white", "width": 1},
            },
            hovertext=[
                f"agent {slot}, fitness {'unknown' if value is None else f'{value:.4g}'}"
                for slot, value in enumerate(fitness)
            ],
            hoverinfo="text",
        )
    )
    figure.add_trace(_legend_only("way of a gene", "#b8c0cc"))
    figure.add_trace(_legend_only("way of the master's", MASTER))
    return figure


def divergence(run: RunRecord) -> go.Figure | None:
    """KL between all agents, census by census."""
    records = [record for record in run.census if "kl" in record]
    if not records:
        return None
    chosen = np.unique(np.linspace(0, len(records) - 1, min(len(records), MOST_FRAMES)).astype(int))
    names = ["master", *map(str, range(1, run.num_agents))]
    figure = _figure(520, "j", "i")
    for place, number in enumerate(chosen):
        # divergences span orders of magnitude; the logarithm shows all of them, the text the number itself
        matrix = np.array(records[number]["kl"])
        heat = go.Heatmap(
            z=np.log10(np.maximum(matrix, 1e-4)),
            x=names,
            y=names,
            customdata=matrix,
            hovertemplate="KL(%{y} || %{x}) = %{customdata:.4g}<extra></extra>",
            colorscale="Magma",
            visible=place == len(chosen) - 1,
            colorbar={"title": "KL(i || j)", "tickvals": [-4, -3, -2, -1, 0, 1, 2], "ticktext": _POWERS},
        )
        figure.add_trace(heat)
    steps = [
        {
            "method": "restyle",
            "args": ["visible", [other == place for other in range(len(chosen))]],
            "label": str(records[number][ITERATION]),
        }
        for place, number in enumerate(chosen)
    ]
    slider = {"active": len(steps) - 1, "steps": steps, "currentvalue": {"prefix": "iteration "}, "pad": {"t": 40}}
    figure.update_layout(sliders=[slider])
    figure.update_yaxes(autorange="reversed", scaleanchor="x", constrain="domain")
    figure.update_xaxes(constrain="domain")
    return figure


_POWERS = ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100"]


def small_multiples(run: RunRecord, tags: tuple[str, ...]) -> go.Figure | None:
    """A small panel for every tag that was logged."""
    tags = tuple(tag for tag in tags if len(run.curve(tag)[1]))
    if not tags:
        return None
    columns = min(3, len(tags))
    rows = -(-len(tags) // columns)
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=tags, vertical_spacing=0.32 / rows, horizontal_spacing=0.07
    )
    for number, tag in enumerate(tags):
        x, y = _thin(*run.curve(tag))
        place = {"row": number // columns + 1, "col": number % columns + 1}
        raw = {"color": BAND, "width": 1}
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=raw, opacity=0.35, hoverinfo="skip"), **place)
        smooth = _smooth(x, y)
        line = go.Scatter(x=smooth[0], y=smooth[1], mode="lines", line={"color": BAND, "width": 2}, name=tag)
        figure.add_trace(line, **place)
    _style(figure, 210 * rows + 50, "", "")
    figure.update_layout(showlegend=False)
    figure.update_yaxes(tickformat="~g")
    figure.update_annotations(font_size=12)
    return figure


def _task_tags(run: RunRecord, metric: str | None) -> tuple[str, ...]:
    more = [tag for tag in run.curves if tag.startswith("Metrics/") and tag != metric]
    return ((metric,) if metric else ()) + tuple(more)[:8]


def _births_of(run: RunRecord, slot: int) -> set[int]:
    return {event[ITERATION] for event in run.lineage for child in event["children"] if child["slot"] == slot}


def _life_text(life: dict[str, Any]) -> str:
    fitness = "unknown" if life["fitness"] is None else f"{life['fitness']:.4g}"
    ends = "alive" if life["death"] is None else f"replaced in {life['death']}"
    parents = f", of {' and '.join(map(str, life['parents']))}" if life["parents"] else ""
    return f"gene {life['id']}{parents}<br>born in {life['birth']}, {ends}<br>fitness {fitness}"


def _figure(height: int, x: str, y: str) -> go.Figure:
    figure = go.Figure()
    _style(figure, height, x, y)
    return figure


def _style(figure: go.Figure, height: int, x: str, y: str) -> None:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="closest",
    )
    if x:
        figure.update_xaxes(title_text=x)
    if y:
        figure.update_yaxes(title_text=y, row=1 if figure._grid_ref else None, col=1 if figure._grid_ref else None)


def _line(figure: go.Figure, points: tuple[np.ndarray, np.ndarray], name: str, color: str, **line: Any) -> None:
    style = {"color": color, "width": 1.8, **line}
    figure.add_trace(go.Scatter(x=points[0], y=points[1], mode="lines", name=name, line=style))


def _band(figure: go.Figure, low: tuple, high: tuple, name: str, opacity: float) -> None:
    fill = f"rgba(76, 120, 168, {opacity})"
    for points, filled in ((low, None), (high, "tonexty")):
        figure.add_trace(
            go.Scatter(
                x=points[0],
                y=points[1],
                mode="lines",
                line={"width": 0},
                fill=filled,
                fillcolor=fill,
                name=name,
                showlegend=filled is not None,
                hoverinfo="skip",
            )
        )


def _legend_only(name: str, color: str, **line: Any) -> go.Scatter:
    return go.Scatter(x=[None], y=[None], mode="lines", name=name, line={"color": color, **line})


def _thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most :data:`MOST_POINTS` points, each the mean of neighbours."""
    groups = -(-len(x) // MOST_POINTS)
    if groups <= 1:
        return x, y
    edges = np.arange(0, len(x), groups)
    counts = np.diff(np.append(edges, len(x)))
    return np.add.reduceat(x, edges) / counts, np.add.reduceat(y, edges) / counts


def _smooth(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points with a centred moving mean; the ends average what there is."""
    x, y = _thin(x, y)
    width = max(1, len(y) // SMOOTHED) // 2 * 2 + 1
    # the mean of equal numbers differs from them by rounding, which an axis would blow up
    if width < 3 or np.ptp(y) == 0.0:
        return x, y
    kernel = np.ones(width)
    return x, np.convolve(y, kernel, "same") / np.convolve(np.ones(len(y)), kernel, "same")
