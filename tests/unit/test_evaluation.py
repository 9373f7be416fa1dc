import math

import numpy as np
import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.commands.seeds import read_seeds
from epo_lab.evaluation.episodes import Episodes
from epo_lab.evaluation.scores import Evaluation, mean_interval, published_scores, table

pytestmark = pytest.mark.unit


def evaluation(agent, scores, metric="successes", **changes):
    fields = {
        "policy": "run",
        "checkpoint": "run/model_7.pt",
        "iteration": 7,
        "agent": agent,
        "num_agents": 3,
        "engine": "torch",
        "num_envs": len(scores),
        "seeds": [0],
        "metric": metric,
        "scores": scores,
        "returns": [10.0 * score for score in scores],
        "lengths": [5] * len(scores),
        "ended_early": None,
    }
    return Evaluation(**{**fields, **changes})


def test_every_environment_counts_equally_often():
    """The first environment falls every step, the second lasts three steps: two episodes of each count."""
    episodes = Episodes(num_envs=2, wanted=2)
    for step in range(6):
        dones = torch.tensor([1, int(step % 3 == 2)])
        extras = {
            "time_outs": torch.tensor([False, True]),
            "log": {"Metrics/x": torch.tensor(float(step)), "Metrics/success_rate": 99.0, "other": 1},
            "last_episode": {"success_rate": torch.tensor([float(step < 1), float(step > 3)])},
        }
        assert not episodes.complete
        episodes.add(torch.tensor([1.0, 2.0]), dones, extras)
    assert episodes.complete
    assert sorted(episode.ret for episode in episodes.list) == [1.0, 1.0, 6.0, 6.0]
    assert sorted(episode.length for episode in episodes.list) == [1, 1, 3, 3]
    assert sum(episode.timed_out for episode in episodes.list) == 2
    # of the four counted episodes, two in each environment, the first of one and the last of the other were successes
    assert episodes.logged == {"Metrics/success_rate": 0.5, "Metrics/x": pytest.approx((0 + 1 + 2 + 5) / 4)}
    assert [episode.success for episode in episodes.list] == [1.0, 0.0, 0.0, 1.0]


def test_all_players_play_as_often_in_every_environment():
    """Environments end at different times; each counted score names the agent that acted, by construction."""
    generator = torch.Generator().manual_seed(0)
    episodes = Episodes(num_envs=5, wanted=2, players=[0, 3, 4], metric="score")
    while not episodes.complete:
        acting = episodes.agents
        dones = torch.rand(5, generator=generator) < 0.3
        episodes.add(torch.ones(5), dones, {"score": 10.0 * acting + torch.arange(5)})
    assert len(episodes.list) == 5 * 3 * 2
    for agent in (0, 3, 4):
        envs = [episode.env for episode in episodes.list if episode.agent == agent]
        assert sorted(envs) == sorted(2 * list(range(5)))
    assert all(episode.score == 10.0 * episode.agent + episode.env for episode in episodes.list)
    assert all(episode.timed_out is None for episode in episodes.list)


def test_a_metric_that_is_only_known_as_an_average_gives_way_to_the_return():
    episodes = Episodes(num_envs=1, wanted=1, metric="success_rate")
    episodes.add(torch.tensor([2.5]), torch.tensor([1]), {"log": {"Metrics/success_rate": 1.0}})
    assert episodes.metric == "return" and episodes.list[0].score == 2.5


def test_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = [low <= 2.0 <= high for low, high in (mean_interval(rng.normal(2.0, 3.0, 40)) for _ in range(60))]
    assert np.mean(covered) > 0.85
    low, high = mean_interval(rng.normal(2.0, 3.0, 4000))
    assert high - low == pytest.approx(2 * 1.96 * 3.0 / math.sqrt(4000), rel=0.1)


def test_table_has_the_master_first_then_the_best_followers_then_the_papers():
    rows = [evaluation(1, [1.0, 2.0]), evaluation(2, [4.0, 6.0]), evaluation(0, [3.0, 3.0])]
    lines = table(rows, published_scores("Epo-Kuka-OneArm-Throw-v0")).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0][:6] == ["policy", "iteration", "agent", "engine", "episodes", "successes"]
    assert cells[0][6:] == ["spread", "95 % interval", "return", "length"]
    assert [row[2] for row in cells[2:5]] == ["master", "follower 2", "follower 1"]
    assert cells[3][5:8] == ["5.000", f"{math.sqrt(2):.3f}", "[4.000, 6.000]"]
    assert cells[5][0] == "EPO, table 1: SAC"
    (epo,) = (row for row in cells if row[0] == "EPO, table 1: EPO")
    assert epo[5:7] == ["16.40", "0.990 (s.e. of 5 runs)"]


def test_without_a_metric_of_its_own_the_return_is_the_score():
    header, _, row = table([evaluation(0, [1.0, 2.0], metric="return", ended_early=2, succeeded=1)]).splitlines()
    assert header.count("return") == 1 and "ended early" in header
    assert "2 (100%)" in row and row.endswith("| 1 (50%)   |"), "the success rate stands beside the return"


def test_published_scores_are_those_of_the_tables():
    anymal = {(s.source, s.method): (s.mean, s.spread) for s in published_scores("Epo-Anymal-Flat-v0")}
    assert anymal["EPO, table 1", "EPO"] == (74.0, 6.65) and anymal["EPO, table 1", "PPO"] == (67.7, 1.71)
    assert anymal["CPO, its release's seeds", "CPO"] == (70.8, 0.2) and len(anymal) == 13
    regrasp = {(s.source, s.method): (s.mean, s.spread) for s in published_scores("Epo-Kuka-OneArm-Regrasp-v0")}
    assert regrasp["CPO, table 1", "CPO"] == (37.4, 1.21)
    stack = {s.method: (s.mean, s.spread, s.steps) for s in published_scores("Epo-Franka-CubeStack-v0")}
    assert stack["CPO"] == (817, 7, 5e9)
    assert published_scores("Epo-Diag-Smooth-v0") == []


@pytest.mark.parametrize(("text", "seeds"), [("3", [0, 1, 2]), ("4,7", [4, 7]), ("5,", [5])])
def test_seeds_are_a_number_or_a_list(text, seeds):
    assert read_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "x", "", ","])
def test_no_seeds_are_refused(text):
    with pytest.raises(UserError, match="--seeds"):
        read_seeds(text)


def test_a_single_episode_has_no_interval():
    assert mean_interval([3.0]) is None
    row = evaluation(0, [3.0])
    assert row.summary()["interval_95"] is None
    assert "[" not in table([row]) and "3.000" in table([row])


def test_progress_counts_what_all_players_together_play():
    assert Episodes(num_envs=4, wanted=2, players=range(8)).most_steps(100) == 1600
    assert Episodes(num_envs=8, wanted=2, players=range(8), rotate=False).most_steps(100) == 200
