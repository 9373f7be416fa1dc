"""Figures of a population: every agent, generations, family tree, who could teach the master, genes, divergences."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .plots import BAND, BEST, EVENT, MASTER, PALETTE, SCALE, blank, legend_only, style
from .record import ITERATION, RunRecord, fitness_over_time, gene_places, lives

MOST_NAMED = 8
"""Agents of which a legend names each."""
MOST_FRAMES = 12
"""Censuses among which the slider of the divergences chooses."""
_POWERS = ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100"]


def every_agent(run: RunRecord) -> go.Figure | None:
    """The fitness of each agent by itself; a line ends where its gene was replaced."""
    moments = fitness_over_time(run)
    if run.num_agents < 2 or not moments:
        return None
    figure = blank(430, "iteration", "fitness")
    for slot in reversed(range(run.num_agents)):
        x: list[float | None] = []
        y: list[float | None] = []
        before = None
        for iteration, genes, values in moments:
            if before is not None and genes[slot] != before:
                x.append(None)
                y.append(None)
            before = genes[slot]
            x.append(iteration)
            y.append(values[slot])
        master = slot == 0 and not run.policies
        name, color = run.name_of(slot), MASTER if master else PALETTE[slot % len(PALETTE)]
        style = {"color": color, "width": 3 if master else 1.5}
        trace = go.Scatter(x=x, y=y, mode="lines+markers", marker={"size": 4}, name=name, line=style)
        # a legend of 64 agents would leave no room for their curves
        trace.showlegend = slot == 0 or run.num_agents <= MOST_NAMED
        figure.add_trace(trace)
    return figure


def teachers(run: RunRecord) -> go.Figure | None:
    """How far each follower acts from the master, census by census, and when it was the better of the two."""
    records = [record for record in run.census if "kl_to_master" in record]
    if run.num_agents < 2 or not records:
        return None
    figure = blank(max(280, 24 * run.num_agents + 130), "iteration", "agent")
    far = np.array([record["kl_to_master"][1:] for record in records], dtype=float).T
    moments = [record[ITERATION] for record in records]
    slots = list(range(1, run.num_agents))
    figure.add_trace(
        go.Heatmap(
            z=np.log10(np.maximum(far, 1e-4)),
            x=moments,
            y=slots,
            customdata=far,
            hovertemplate="agent %{y}, iteration %{x}: KL %{customdata:.3g}<extra></extra>",
            colorscale="Tealgrn_r",
            zmin=-3,
            zmax=1,
            colorbar={"title": "KL", "tickvals": [-3, -2, -1, 0, 1], "ticktext": _POWERS[1:6], "thickness": 12},
        )
    )
    better = [
        (record[ITERATION], slot)
        for record in records
        for slot in slots
        if None not in (record["fitness"][slot], record["fitness"][0])
        and record["fitness"][slot] > record["fitness"][0]
    ]
    star = {"symbol": "star", "size": 9, "color": "#f4b942", "line": {"color": "#1f2733", "width": 0.8}}
    x, y = zip(*better, strict=True) if better else ((None,), (None,))
    figure.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=star, name="better than the master", hoverinfo="skip"))
    figure.update_layout(showlegend=True)
    figure.update_yaxes(tickvals=slots, autorange="reversed")
    return figure


def generations(run: RunRecord) -> go.Figure | None:
    """Every event: how far the followers were apart, what they had to exceed, and who was replaced."""
    if not run.lineage or run.policies:
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
    style(figure, 470, "", "fitness at the event")
    figure.update_yaxes(title_text="spread", row=2, col=1)
    figure.update_xaxes(title_text="iteration", row=2, col=1)
    return figure


def family_tree(run: RunRecord) -> go.Figure | None:
    """A bar for every gene in the row of its agent, and lines from its parents to its birth."""
    if run.num_agents < 2:
        return None
    figure = blank(max(320, 26 * run.num_agents + 120), "iteration", "agent")
    end = int(run.curves[ITERATION][-1]) + 1
    all_lives = lives(run)
    by_id = {life["id"]: life for life in all_lives}
    parts = _stretches(run, all_lives, end)
    known = [value for *_, value in parts if value is not None]
    links_x: list[float | None] = []
    links_y: list[float | None] = []
    for life in all_lives:
        # a parent is not known if the line of its birth is damaged
        for parent in [parent for parent in life["parents"] if parent in by_id]:
            links_x += [life["birth"] - 0.008 * end, life["birth"] + 0.008 * end, None]
            links_y += [by_id[parent]["slot"], life["slot"], None]
    figure.add_trace(
        go.Bar(
            orientation="h",
            base=[begin for _, begin, _, _ in parts],
            x=[stop - begin for _, begin, stop, _ in parts],
            y=[life["slot"] for life, *_ in parts],
            width=0.62,
            marker={
                "color": [np.nan if value is None else value for *_, value in parts],
                "colorscale": SCALE,
                "cmin": min(known, default=0.0),
                "cmax": max(known, default=1.0),
                "colorbar": {"title": "fitness", "thickness": 12},
                "line": {"width": 0},
            },
            hovertext=[_life_text(life, value) for life, _, _, value in parts],
            hoverinfo="text",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[life["birth"] for life in all_lives],
            y=[life["slot"] for life in all_lives],
            mode="markers+text",
            marker={"symbol": "line-ns-open", "size": 15, "color": "white"},
            # a number needs room
            text=[f"{life['id']}" if (life["death"] or end) - life["birth"] > 0.06 * end else "" for life in all_lives],
            textposition="middle right",
            textfont={"size": 10, "color": "#9aa3ad"},
            hoverinfo="skip",
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
    names = [run.name_of(slot).removeprefix("agent ") for slot in range(run.num_agents)]
    figure.update_yaxes(tickvals=list(range(run.num_agents)), ticktext=names, autorange="reversed", showgrid=False)
    figure.update_layout(barmode="overlay")
    return figure


def gene_map(run: RunRecord) -> go.Figure | None:
    """All genes on the first two principal axes: where they are, and the way that each agent's went."""
    found = gene_places(run)
    if found is None:
        return None
    iterations, places, shares = found
    figure = blank(480, f"first axis ({shares[0]:.0%} of the variance)", f"second axis ({shares[1]:.0%})")
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
    figure.add_trace(legend_only("way of a gene", "#b8c0cc"))
    figure.add_trace(legend_only("way of the master's", MASTER))
    return figure


def divergence(run: RunRecord) -> go.Figure | None:
    """KL between all agents, census by census."""
    records = [record for record in run.census if "kl" in record]
    if not records:
        return None
    chosen = np.unique(np.linspace(0, len(records) - 1, min(len(records), MOST_FRAMES)).astype(int))
    names = ["master", *map(str, range(1, run.num_agents))]
    figure = blank(520, "j", "i")
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


def _births_of(run: RunRecord, slot: int) -> set[int]:
    return {event[ITERATION] for event in run.lineage for child in event["children"] if child["slot"] == slot}


def _stretches(
    run: RunRecord, all_lives: list[dict[str, Any]], end: int
) -> list[tuple[dict[str, Any], float, float, float | None]]:
    """Return the lives of genes cut where fitness was measured: life, begin, end, and the fitness at the end of it.

    A measurement tells of the episodes before it. After the last one nothing newer is known.
    """
    moments = fitness_over_time(run)
    parts = []
    for life in all_lives:
        begin, stop, value = life["birth"], end if life["death"] is None else life["death"], None
        slot = life["slot"]
        for iteration, genes, values in moments:
            if begin < iteration <= stop and genes[slot] == life["id"]:
                value = value if values[slot] is None else values[slot]
                parts.append((life, begin, iteration, value))
                begin = iteration
        if begin < stop:
            parts.append((life, begin, stop, value))
    return parts


def _life_text(life: dict[str, Any], value: float | None) -> str:
    fitness = "unknown" if value is None else f"{value:.4g}"
    ends = "alive" if life["death"] is None else f"replaced in {life['death']}"
    parents = f", of {' and '.join(map(str, life['parents']))}" if life["parents"] else ""
    return f"gene {life['id']}{parents}<br>born in {life['birth']}, {ends}<br>fitness {fitness}"
