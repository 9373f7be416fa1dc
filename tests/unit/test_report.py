"""The report of a run, from a folder that is made up here: numbers in, numbers on the page."""

import json
import re

import numpy as np
import pytest

from epo_lab.base.errors import UserError
from epo_lab.commands.report import report
from epo_lab.report.figures import figures
from epo_lab.report.record import genes_over_time, lives, principal_axes, read_run

pytestmark = pytest.mark.unit

AGENTS = 4


def child(slot, new, parents):
    return {"slot": slot, "id": new, "parents": parents, "parent_ids": parents}


@pytest.fixture
def run(tmp_path):
    """A population of four with two generations and a film."""
    folder = tmp_path / "2026-01-01_00-00-00"
    (folder / "params").mkdir(parents=True)
    (folder / "videos").mkdir()
    tags = ["iteration", "Perf/total_steps", "Master/fitness", "Metrics/score"]
    tags += [f"Population/fitness_{name}" for name in ("min", "q25", "median", "q75", "max")]
    rows = [[i, 100 * (i + 1), "" if i == 0 else i, 0.5, *(i + k for k in range(5))] for i in range(30)]
    lines = [",".join(tags), *(",".join(map(str, row)) for row in rows)]
    (folder / "curves.csv").write_text("\n".join(lines) + "\n")
    events = [
        {"iteration": 10, "fitness": [5, 4, 3, 1], "children": [child(3, 4, [1, 2])]},
        {"iteration": 20, "fitness": [5, 1, 3, None], "children": [child(1, 5, [4, 2])]},
    ]
    events = [{**event, "spread": 3.0, "median": 3.0, "threshold": 1.0} for event in events]
    (folder / "lineage.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    genes = np.random.default_rng(0).normal(size=(2, AGENTS, 3)).tolist()
    kl = (0.1 * (1.0 - np.eye(AGENTS))).tolist()
    census = [
        {"iteration": 10 * n, "fitness": [6, 2, 3, 9], "gene_id": [0, 5, 2, 4], "kl": kl, "genes": genes[n - 1]}
        for n in (1, 2)
    ]
    (folder / "population.jsonl").write_text("".join(json.dumps(record) + "\n" for record in census))
    (folder / "run.json").write_text(json.dumps({"task": "Some-Task-v0", "metadata": {"agent": "epo"}}))
    (folder / "params" / "agent.yaml").write_text("seed: 7\nname: <b>not bold</b>\n")
    (folder / "videos" / "walk.gif").write_bytes(b"GIF89a-film")
    (folder / "command.txt").write_text("train --task Some-Task-v0\n")
    (folder / "environment.json").write_text(json.dumps({"torch": "9.9.9"}))
    return folder


def test_the_page_holds_everything_and_asks_for_nothing(run):
    assert report(run) == 0
    page = (run / "report.html").read_text()
    for anchor in ("learning", "generations", "family", "genes", "divergence", "settings", "environment", "films"):
        assert f'<section id="{anchor}">' in page, anchor
    assert "data:image/gif;base64,R0lGODlhLWZpbG0=" in page
    assert "9.9.9" in page and "train --task Some-Task-v0" in page
    assert "&lt;b&gt;not bold&lt;/b&gt;" in page and "<b>not bold</b>" not in page
    outside = page[: page.index("<script>")] + page[page.index("</head>") :]
    assert not re.search(r"""(src|href)=["']https?:""", outside), "nothing is fetched"


def test_lives_are_those_of_the_lineage(run):
    found = {life["id"]: life for life in lives(read_run(run))}
    assert sorted(found) == [0, 1, 2, 3, 4, 5]
    assert (found[3]["birth"], found[3]["death"], found[3]["fitness"]) == (0, 10, 1)
    assert (found[4]["slot"], found[4]["birth"], found[4]["death"]) == (3, 10, None)
    assert found[4]["parents"] == [1, 2] and found[5]["parents"] == [4, 2]
    assert (found[1]["death"], found[1]["fitness"]) == (20, 1)
    assert found[4]["fitness"] == 9, "known from the last census only"


def test_curves_show_master_best_and_band(run):
    record = read_run(run)
    figure = figures(record, "Metrics/score")["learning"][1]
    by_name = {trace.name: trace for trace in figure.data}
    assert {"master", "best follower", "all followers", "middle half"} <= by_name.keys()
    assert by_name["master"].x[0] == 200, "nothing was known in the first iteration"
    assert list(by_name["best follower"].y) == [i + 4 for i in range(30)]
    assert len(figure.layout.shapes) == 2, "one line a generation"


def test_the_map_is_the_projection_that_keeps_most_variance(run):
    record = read_run(run)
    points = np.concatenate([genes for _, genes in genes_over_time(record)])
    mean, axes, shares = principal_axes(points)
    values = np.sort(np.linalg.eigvalsh(np.cov(points.T)))[::-1]
    assert shares == pytest.approx(values[:2] / values.sum())
    assert np.var((points - mean) @ axes.T, axis=0, ddof=1) == pytest.approx(values[:2])
    markers = figures(record, None)["genes"][1].data
    (last,) = (trace for trace in markers if trace.mode == "markers+text")
    assert list(last.marker.color) == [6, 2, 3, 9] and last.text[0] == "master"
    assert np.stack([last.x, last.y], axis=1) == pytest.approx((points[AGENTS:] - mean) @ axes.T)


def test_a_run_of_one_agent_has_a_page_too(run):
    for name in ("lineage.jsonl", "population.jsonl"):
        (run / name).unlink()
    assert report(run) == 0
    page = (run / "report.html").read_text()
    assert '<section id="learning">' in page and '<section id="family">' not in page


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no run folder"):
        report(tmp_path)
    assert not list(tmp_path.iterdir())
