"""What all figures of a report share: colours, lines, bands, and curves that are thinned and smoothed."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

MASTER, BEST, BAND, EVENT = "#d1495b", "#2e7d6b", "#4c78a8", "#8a8f98"
PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#72b7b2", "#9d755d", "#eeca3b", "#79706e", "#ff9da6", "#439894")
SCALE = "Viridis"
MOST_POINTS = 1500
"""Points of a curve; more are averaged in groups."""
SMOOTHED = 40
"""Width of the moving mean over noisy curves, as a share of their length: one fortieth."""


def blank(height: int, x: str, y: str) -> go.Figure:
    figure = go.Figure()
    style(figure, height, x, y)
    return figure


def style(figure: go.Figure, height: int, x: str, y: str) -> None:
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


def add_line(figure: go.Figure, points: tuple[np.ndarray, np.ndarray], name: str, color: str, **line: Any) -> None:
    style = {"color": color, "width": 1.8, **line}
    figure.add_trace(go.Scatter(x=points[0], y=points[1], mode="lines", name=name, line=style))


def add_band(figure: go.Figure, low: tuple, high: tuple, name: str, opacity: float) -> None:
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


def legend_only(name: str, color: str, **line: Any) -> go.Scatter:
    return go.Scatter(x=[None], y=[None], mode="lines", name=name, line={"color": color, **line})


def thin(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most :data:`MOST_POINTS` points, each the mean of neighbours."""
    groups = -(-len(x) // MOST_POINTS)
    if groups <= 1:
        return x, y
    edges = np.arange(0, len(x), groups)
    counts = np.diff(np.append(edges, len(x)))
    return np.add.reduceat(x, edges) / counts, np.add.reduceat(y, edges) / counts


def smooth(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points with a centred moving mean; the ends average what there is."""
    x, y = thin(x, y)
    width = max(1, len(y) // SMOOTHED) // 2 * 2 + 1
    # the mean of equal numbers differs from them by rounding, which an axis would blow up
    if width < 3 or np.ptp(y) == 0.0:
        return x, y
    kernel = np.ones(width)
    return x, np.convolve(y, kernel, "same") / np.convolve(np.ones(len(y)), kernel, "same")
