"""Statistics over seeds and diversity."""

import numpy as np
import pytest

from epo_lab.evaluation.statistics import bootstrap_interval, interquartile_mean
from epo_lab.report.comparison import Score, merge, plot, read_scores, summarize, write_scores

pytestmark = pytest.mark.unit


def test_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == pytest.approx(3.5)
    # of six values the outer ones count nothing and their neighbours half: (0.5*1 + 2 + 3 + 0.5*4) / 3
    assert interquartile_mean(np.array([4.0, 0, 9, 1, 2, 3])) == pytest.approx(2.5)
    assert interquartile_mean(np.array([7.0])) == 7.0


def test_bootstrap_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(200):
        low, high = bootstrap_interval(rng.normal(size=20), resamples=300, seed=trial)
        hits += low <= 0.0 <= high
    assert 0.85 < hits / 200 <= 0.99


def test_runs_are_added_to_a_table_and_replace_the_same_ones():
    old = [Score("T", "ppo", seed, "final", 10, 0.1) for seed in (0, 1)] + [Score("U", "ppo", 0, "final", 10, 0.2)]
    new = [Score("T", "epo", 0, "final", 10, 0.3), Score("T", "ppo", 1, "final", 10, 0.4)]
    merged = [(score.task, score.agent, score.seed, score.score) for score in merge(old, new)]
    assert merged == [("T", "ppo", 0, 0.1), ("T", "ppo", 1, 0.4), ("T", "epo", 0, 0.3), ("U", "ppo", 0, 0.2)]


def test_table_and_figure(tmp_path):
    scores = [
        Score("T", agent, seed, kind, steps, value + 0.1 * seed)
        for agent, value in (("ppo", 0.2), ("epo", 0.5))
        for seed in range(4)
        for kind, steps in (("curve", 100), ("curve", 200), ("final", 200))
    ]
    write_scores(tmp_path / "scores.csv", scores)
    assert read_scores(tmp_path / "scores.csv") == [
        Score(s.task, s.agent, s.seed, s.kind, s.steps, round(s.score, 4)) for s in scores
    ]
    assert "| T | 0.350 [" in summarize(scores)
    plot(scores, tmp_path / "scores.png")
    assert (tmp_path / "scores.png").stat().st_size > 10_000


def test_a_figure_of_many_agents_with_long_names_cuts_nothing_off(tmp_path, monkeypatch):
    from matplotlib import pyplot as plt

    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    agents = [f"epo num_agents=8,trigger={number}" for number in range(12)]
    plot([Score("T", agent, 0, kind, 100, 0.5) for agent in agents for kind in ("curve", "final")], tmp_path / "a.png")
    (figure,) = figures
    box = figure.get_tightbbox()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.get_figwidth() and box.y1 <= figure.get_figheight()
    assert min(axes.get_window_extent().width for axes in figure.axes) > 200
    monkeypatch.undo()
    plt.close(figure)
