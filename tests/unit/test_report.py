"""The report of a run, from a folder that is made up here: numbers in, numbers on the page."""

import argparse
import json
import re
import shutil
import threading
import urllib.request

import numpy as np
import pytest

from epo_lab.base.errors import UserError
from epo_lab.commands.report import report
from epo_lab.report.figures import figures
from epo_lab.report.page import _folded, make_page
from epo_lab.report.record import genes_over_time, lives, principal_axes, read_run
from epo_lab.report.several import groups, together
from epo_lab.report.story import ancestors, story
from epo_lab.report.watch import make_server

pytestmark = pytest.mark.unit

AGENTS = 4
ANCHORS = ["learning", "agents", "generations", "family", "teachers", "genes", "divergence", "settings"]
ANCHORS += ["environment", "films"]


def options(*runs, **changes):
    """What scripts/report.py hands on."""
    values = {"runs": list(runs), "output": None, "pdf": False, "watch": False, "host": "127.0.0.1", "port": 8081}
    return argparse.Namespace(**values | changes)


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
        {
            "iteration": 10 * n,
            "fitness": [6, 2, 3, 9],
            "gene_id": [0, 5, 2, 4],
            "kl": kl,
            "kl_to_master": kl[0],
            "genes": genes[n - 1],
        }
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
    assert report(options(run)) == 0
    page = (run / "report.html").read_text()
    for anchor in ANCHORS:
        assert f'<section id="{anchor}">' in page, anchor
    assert "data:image/gif;base64,R0lGODlhLWZpbG0=" in page
    assert "9.9.9" in page and "train --task Some-Task-v0" in page
    assert "&lt;b&gt;not bold&lt;/b&gt;" in page and "<b>not bold</b>" not in page
    assert "max-width: 600px" in page and "@media print" in page
    outside = page[: page.index("<script>")] + page[page.index("</head>") :]
    assert not re.search(r"""(src|href)=["']https?:""", outside), "nothing is fetched"
    assert '"showSendToCloud": false' in outside, "and nothing is sent"


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
    figure = figures(record, "Metrics/score")["learning"][1][0]
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
    markers = figures(record, None)["genes"][1][0].data
    (last,) = (trace for trace in markers if trace.mode == "markers+text")
    assert list(last.marker.color) == [6, 2, 3, 9] and last.text[0] == "master"
    assert np.stack([last.x, last.y], axis=1) == pytest.approx((points[AGENTS:] - mean) @ axes.T)


def test_a_run_of_one_agent_has_a_page_too(run):
    for name in ("lineage.jsonl", "population.jsonl"):
        (run / name).unlink()
    assert report(options(run)) == 0
    page = (run / "report.html").read_text()
    assert '<section id="learning">' in page and '<section id="family">' not in page


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no run folder"):
        report(options(tmp_path))
    assert not list(tmp_path.iterdir())


def test_five_sentences_tell_who_won_and_what_to_try(run):
    who, when, generations, sharing, following = story(read_run(run))
    assert who.startswith("Follower 3 (gene 4) won: at the last census its fitness was 9, that of the master 6;")
    assert when.startswith("It had made 90% of its way after 2,800 of 3,000 steps")
    assert generations == "2 generations took place; the best follower of the end descends from 1 of them (number 1)."
    assert sharing == "The master had no data of others to use."
    assert following.startswith("Try next: more iterations"), "its fitness rises to the end"


def test_a_population_without_a_family_tree_is_one_too(run):
    for name in ("lineage.jsonl", "population.jsonl"):
        (run / name).unlink()
    (run / "params/agent.yaml").write_text("algorithm:\n  num_agents: 8\n")
    record = read_run(run)
    record.curves["Generation/events"] = np.arange(30.0)
    record.curves["Master/fitness"][5:] = 7.0
    assert (record.population, record.generations) == (8, 29)
    assert (
        story(record)[2]
        == "29 generations took place; this method keeps no family tree that would tell which mattered."
    )
    assert "a population" not in story(record)[-1]
    page = make_page([record], None, "")
    del record.curves["Master/fitness"]
    assert story(record)[0] == "The best member's fitness ended at 32 (mean of the last tenth)."
    assert "<b>8</b><span>agents</span>" in page and "<b>29</b><span>generations</span>" in page


def test_policies_that_take_over_from_others_have_a_family_tree(run):
    """Of three, the first takes over from the second, changes its own settings, and then gives to the third."""
    for name in ("lineage.jsonl", "population.jsonl"):
        (run / name).unlink()
    changes = [(10, [1.0, 5.0, 2.0], 0, 1), (15, [5.0, 5.0, 2.0], 0, 0), (20, [9.0, 6.0, float("nan")], 2, 0)]
    lines = [
        {"iteration": i, "objectives": values, "changes": [{"policy": policy, "weights_from": donor}]}
        for i, values, policy, donor in changes
    ]
    (run / "pbt.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = read_run(run)
    found = {life["id"]: (life["slot"], life["birth"], life["death"], life["parents"]) for life in lives(record)}
    assert found == {
        0: (0, 0, 10, []), 1: (1, 0, None, []), 2: (2, 0, 20, []), 3: (0, 10, None, [1]), 4: (2, 20, None, [3])
    }  # fmt: skip
    assert story(record)[2] == (
        "3 generations took place; the best policy of the end descends from 1 of them (number 1)."
    )
    shown = figures(record, None)
    assert {"agents", "family"} <= shown.keys() and not {"generations", "genes", "teachers"} & shown.keys()
    assert shown["agents"][1][0].data[-1].name == "policy 0"


def test_a_run_that_has_arrived_gets_another_advice(run):
    record = read_run(run)
    record.curves["Master/fitness"][5:] = 7.0
    record.curves["Population/effective_sample_size"] = np.full(30, 0.1)
    assert "because it can use little of their data" in story(record)[-1]
    assert story(record)[3].startswith("The master could hardly use the others' data: 10% of its samples counted")
    record.curves["Population/effective_sample_size"][:] = 0.9
    record.curves["Population/kl_to_master"] = np.full(30, 16.0)
    assert story(record)[3].startswith("The master could use") and "little of their data" not in story(record)[-1]
    record.curves["Population/kl_pairwise"] = np.full(30, 0.001)
    assert "because the agents act alike" in story(record)[-1]
    assert ancestors(record, 5) == {5, 4, 2, 1}


def test_the_tree_has_the_colour_of_its_time(run):
    (bars,) = (trace for trace in figures(read_run(run), None)["family"][1][0].data if trace.type == "bar")
    stretches = list(zip(bars.y, bars.base, bars.x, bars.marker.color, strict=True))
    assert [stretch[1:] for stretch in stretches if stretch[0] == 1][:2] == [(0, 10, 4), (10, 10, 1)]
    first, second = (stretch for stretch in stretches if stretch[0] == 0 and stretch[1] in (0, 10))
    assert first == (0, 0, 10, 5) and second == (0, 10, 10, 5), "cut where the fitness was measured"
    (child_of_3,) = (stretch for stretch in stretches if stretch[0] == 3 and stretch[1] == 10)
    assert np.isnan(child_of_3[3]), "nothing was known about the child at the next generation"


def test_what_the_command_changed_stands_before_the_settings(run):
    manifest = {"task": "T", "metadata": {"agent": "rsl_rl_epo_cfg_entry_point"}}
    request = {"seed": 7, "overrides": ["agent.algorithm.evolution.gamma=0.1"]}
    (run / "run.json").write_text(json.dumps(manifest | {"request": request}))
    record = read_run(run)
    assert record.agent == "epo"
    assert record.asked_for == {"--seed": "7", "agent.algorithm.evolution.gamma": "0.1"}


def test_without_successes_the_return_tells_agents_apart(run):
    row = {"policy": "p", "iteration": 1, "agent": 0, "engine": "e", "episodes": 2, "metric": "successes", "mean": 0.0}
    row |= {"standard_deviation": 0.0, "interval_95": None, "mean_return": 123.4, "mean_length": 50.0, "succeeded": 1}
    (run / "evaluation.json").write_text(json.dumps({"evaluations": [row], "published": []}))
    report(options(run))
    page = (run / "report.html").read_text()
    assert "<th>return</th>" in page and "<td>123.4</td>" in page
    assert "<th>succeeded</th>" in page and "<td>1</td></tr>" in page


def test_several_runs_stand_beside_each_other(run, tmp_path):
    other = tmp_path / "2026-01-02_00-00-00"
    shutil.copytree(run, other)
    (other / "params" / "agent.yaml").write_text("seed: 8\nname: <b>not bold</b>\n")
    assert list(groups([read_run(run), read_run(other)])) == ["epo"], "they differ in their seed only"
    third = tmp_path / "2026-01-03_00-00-00"
    shutil.copytree(run, third)
    (third / "params" / "agent.yaml").write_text("seed: 8\nname: other\n")
    runs = [read_run(folder) for folder in (run, other, third)]
    assert [len(members) for members in groups(runs).values()] == [2, 1]
    for number, folder in enumerate((run, other, third)):
        more = "".join(f"s{k}: {number // 2}\n" for k in range(5))
        (folder / "params" / "env.yaml").write_text(more)
    wide = groups([read_run(folder) for folder in (run, other, third)])
    assert [len(members) for members in wide.values()] == [2, 1], "many settings differ, and still they are no group"
    names = [trace.name for trace in together(runs).data if trace.showlegend is not False]
    assert names == ["epo name=<b>not bold</b> (2 runs)", "epo name=other"]
    assert report(options(run, other, third, output=tmp_path / "page.html")) == 0
    page = (tmp_path / "page.html").read_text()
    assert "settings</summary>" not in page, "a short table is open"
    assert "<summary>16 settings</summary>" in _folded("<table>", 16)
    assert page.count('<ol class="story">') == 3 and "<td>agent.seed</td><td>7</td><td>8</td><td>8</td>" in page


def test_a_page_is_served_while_the_run_goes_on(run):
    with make_server(
        [run], lambda script, live: make_page([read_run(run)], None, script, live), "127.0.0.1", 0
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"

        def get(path):
            with urllib.request.urlopen(address + path) as answer:
                return answer.read().decode()

        before, text = get("version"), get("")
        assert 'src="plotly.js"' in text and "location.reload()" in text and '<section id="learning">' in text
        with (run / "curves.csv").open("a") as file:
            file.write("30,3100,30,0.5,30,31,32,33,34\n")
        assert get("version") != before and "31" in get("")
        server.shutdown()
    assert not (run / "report.html").exists(), "nothing is written"


def test_a_pdf_needs_a_browser_and_says_so_first(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="--pdf needs one of chromium"):
        report(options(run, pdf=True))
    assert not (run / "report.html").exists()
