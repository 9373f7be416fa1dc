"""The figures of a run's report, with plotly: a table of its sections, and those that every run has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go

from .plots import BAND, BEST, EVENT, MASTER, add_band, add_line, blank, legend_only, smooth, thin
from .population import divergence, every_agent, family_tree, gene_map, generations, teachers
from .record import ITERATION, RunRecord

Panels = list[go.Figure]
"""Figures of a section: they stand side by side where the page is wide enough."""


def figures(run: RunRecord, metric: str | None) -> dict[str, tuple[str, Panels]]:
    """Return title and figures of every section that the run has data for, by its anchor.

    Args:
        run: The run.
        metric: Tag of the task's metric.
    """
    makers: dict[str, tuple[str, Callable[[], go.Figure | Panels | None]]] = {
        "learning": ("Learning", lambda: learning(run)),
        "task": ("The task", lambda: small_multiples(run, _task_tags(run, metric))),
        "rewards": ("Terms of the reward", lambda: small_multiples(run, _tags(run, "Episode_Reward/"))),
        "agents": ("Every agent", lambda: every_agent(run)),
        "generations": ("Generations", lambda: generations(run)),
        "family": ("Family tree", lambda: family_tree(run)),
        "teachers": ("Who could teach the master", lambda: teachers(run)),
        "sharing": ("What the master can use of the others' data", lambda: small_multiples(run, SHARING)),
        "genes": ("Map of the genes", lambda: gene_map(run)),
        "divergence": ("Divergence between agents", lambda: divergence(run)),
        "weights": ("Evolution of the weights", lambda: small_multiples(run, WEIGHTS)),
        "replay": ("Replay and critics", lambda: small_multiples(run, REPLAY if "Replay/age" in run.curves else ())),
        "optimizer": ("Optimizer and speed", lambda: small_multiples(run, OPTIMIZER)),
    }
    made = {anchor: (title, make()) for anchor, (title, make) in makers.items()}
    return {
        anchor: (title, panels if isinstance(panels, list) else [panels])
        for anchor, (title, panels) in made.items()
        if panels
    }


SHARING = (
    "Population/effective_sample_size",
    "Population/kl_to_master",
    "Population/is_deviation",
    "Population/kl_pairwise",
    "Population/gradient_cosine",
    "Population/gene_spread",
)


WEIGHTS = (
    "Population/mutation_rate",
    "Population/parameter_spread",
    "Population/fitness_mean",
    "Population/fitness_sac",
    "Generation/sac_wins",
    "Generation/winners_bred",
    "Generation/sac_plays",
    "Generation/sac_probability",
    "Generation/gradient_steps",
)

REPLAY = (
    "Replay/transitions",
    "Replay/age",
    "Replay/reward_factor",
    "Loss/critic",
    "Loss/critic_gradient",
    "Loss/q",
    "Loss/policy",
    "Loss/temperature",
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
    figure = blank(430, "environment steps", "fitness")
    low, high = (smooth(*run.curve(f"Population/fitness_{name}")) for name in ("min", "max"))
    if len(low[1]):
        quarter, three = (smooth(*run.curve(f"Population/fitness_{name}")) for name in ("q25", "q75"))
        add_band(figure, low, high, "all followers", 0.12)
        add_band(figure, quarter, three, "middle half", 0.25)
        add_line(figure, smooth(*run.curve("Population/fitness_median")), "median follower", BAND, dash="dot")
        add_line(figure, high, "best follower", BEST)
    master = run.curve("Master/fitness")
    if len(master[1]):
        add_line(figure, smooth(*master), "master", MASTER, width=2.5)
    elif not len(low[1]):
        add_line(figure, smooth(*run.curve("Train/mean_reward")), "mean reward", MASTER, width=2.5)
        figure.update_yaxes(title_text="return of the last 100 episodes")
    for event in run.lineage:
        x = float(run.steps_at([event[ITERATION]])[0])
        figure.add_vline(x=x, line={"color": EVENT, "width": 1, "dash": "dot"}, opacity=0.6)
    if run.lineage:
        figure.add_trace(legend_only("generation", EVENT, dash="dot"))
    _add_clock(figure, run)
    return figure


def small_multiples(run: RunRecord, tags: tuple[str, ...]) -> Panels:
    """A small figure for every tag that was logged."""
    panels = []
    for tag in tags:
        x, y = thin(*run.curve(tag))
        if not len(y):
            continue
        figure = blank(220, "", "")
        raw, mean = {"color": BAND, "width": 1}, smooth(x, y)
        figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=raw, opacity=0.35, hoverinfo="skip"))
        figure.add_trace(go.Scatter(x=mean[0], y=mean[1], mode="lines", line={"color": BAND, "width": 2}, name=tag))
        figure.update_layout(
            showlegend=False, title={"text": tag, "font": {"size": 12}}, margin={"l": 50, "r": 10, "t": 34, "b": 30}
        )
        figure.update_yaxes(tickformat="~g")
        panels.append(figure)
    return panels


def _tags(run: RunRecord, prefix: str) -> tuple[str, ...]:
    return tuple(sorted(tag for tag in run.curves if tag.startswith(prefix)))


def _task_tags(run: RunRecord, metric: str | None) -> tuple[str, ...]:
    more = [tag for tag in run.curves if tag.startswith("Metrics/") and tag != metric]
    return ((metric,) if metric else ()) + tuple(more)[:8]


def _add_clock(figure: go.Figure, run: RunRecord) -> None:
    """Write the computing time above the environment steps."""
    steps, hours = run.steps_at(run.curves[ITERATION]), run.hours()
    if hours[-1] <= 0.0:
        return
    unit, name = (1.0, "h") if hours[-1] >= 2 else (60.0, "min") if hours[-1] * 60 >= 2 else (3600.0, "s")
    ticks = np.linspace(0.0, hours[-1], 6)[1:]
    places = np.interp(ticks, hours, steps)
    figure.add_trace(go.Scatter(x=places, y=[None] * len(places), xaxis="x2", showlegend=False, hoverinfo="skip"))
    top = {"overlaying": "x", "side": "top", "matches": "x", "showgrid": False, "tickfont": {"color": EVENT}}
    figure.update_layout(
        xaxis2={**top, "tickvals": places, "ticktext": [f"{unit * tick:.3g} {name}" for tick in ticks]},
        legend={"y": 1.1},
    )
