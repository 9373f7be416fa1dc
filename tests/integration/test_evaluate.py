"""``scripts/evaluate.py`` from the outside: on diagnostics, and (slow) on both physics engines."""

import json
import shutil
import statistics

import pytest

from support.command import script

pytestmark = pytest.mark.integration

TASK = "Epo-Diag-Deceptive-v0"
SMALL = ["--num_envs", "64", "--max_iterations", "9"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run of a population, with nets of its own, and one of PPO."""
    folder = tmp_path_factory.mktemp("user")
    for agent, *more in (("epo", "agent.actor.hidden_dims=[16]", "agent.algorithm.num_agents=8"), ("ppo",)):
        options = ["--agent", agent, "--run_name", agent, *SMALL, *more]
        result = script("train", "--task", TASK, *options, cwd=folder)
        assert result.returncode == 0, result.stderr
    return folder, *(next(folder.glob(f"logs/rsl_rl/*/*_{agent}")) for agent in ("epo", "ppo"))


def test_populations_and_ppo_stand_in_one_table_and_one_file(trained):
    folder, epo, ppo = trained
    options = ["--checkpoint", str(epo), str(ppo / "best.pt"), "--members", "all", "--seeds", "3,4", "--num_envs", "40"]
    result = script("evaluate", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    content = json.loads((epo / "evaluation.json").read_text())
    rows = content["evaluations"]
    assert content["task"] == TASK and "scripts/evaluate.py" in content["command"]
    assert [row["agent"] for row in rows].count(0) == 2 and {row["agent"] for row in rows} == set(range(8))
    assert all(row["episodes"] == len(row["scores"]) == 80 and row["metric"] == "score" for row in rows)
    for row in rows:
        assert row["mean"] == pytest.approx(statistics.mean(row["scores"]))
        assert row["standard_deviation"] == pytest.approx(statistics.stdev(row["scores"]))
        assert row["interval_95"][0] <= row["mean"] <= row["interval_95"][1]
        assert f"{row['mean']:.3f}" in result.stdout
    assert len({round(row["mean"], 6) for row in rows}) == 9, "every agent has a policy of its own"
    assert f"{ppo.name} best" in result.stdout


def test_play_and_evaluate_agree_about_the_master(trained):
    folder, epo, _ = trained
    options = ["--checkpoint", str(epo), "--num_envs", "40"]
    results = [script("play", *options, "--seed", "0", cwd=folder), script("evaluate", *options, cwd=folder)]
    rows = [next(line for line in result.stdout.splitlines() if "| master" in line) for result in results]
    assert rows[0] == rows[1]


def test_bad_input_is_refused(trained, refuse, tmp_path):
    _, epo, _ = trained
    run = ["--checkpoint", str(epo)]
    refuse("evaluate", says="--task is missing")
    refuse("evaluate", *run, "--members", "9", says="has members 0 to 7")
    refuse("evaluate", *run, "--agents", "best", says="--members best: say all, master, or numbers")
    refuse("evaluate", *run, "--seeds", "none", says="--seeds none")
    refuse("evaluate", *run, "--episodes", "0", says="no whole number of at least 1")
    refuse("evaluate", *run, "--physics", "ovphysx", says="has no physics")
    refuse("evaluate", *run, "--task", "Epo-Diag-Smooth-v0", says="was trained on Epo-Diag-Deceptive-v0")
    refuse("evaluate", "--checkpoint", "nowhere.pt", "--task", TASK, says="no checkpoint at nowhere.pt")
    assert not list(tmp_path.iterdir()), "nothing was written"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "metric", "length"),
    [
        ("Epo-Anymal-Flat-v0", "return", "env.episode_length_s=0.4"),
        ("Epo-Kuka-OneArm-Regrasp-v0", "successes", "env.commands.goal.goal_length=20"),
    ],
)
def test_a_policy_is_scored_on_both_engines(tmp_path, task, metric, length):
    trained = script("train", "--task", task, "--num_envs", "8", "--max_iterations", "1", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr[-3000:]
    (run,) = tmp_path.glob("logs/rsl_rl/*/*")
    # as after a move to another machine: only the folder is left
    moved = shutil.move(run, tmp_path / "moved")
    options = ["--checkpoint", moved, "--num_envs", "4", "--physics", "ovphysx,newton_mjwarp", "--agents", "all"]
    result = script("evaluate", *options, "--output", "out.json", length, cwd=tmp_path, timeout=550)
    assert result.returncode == 0, result.stderr[-3000:]
    rows = json.loads((tmp_path / "out.json").read_text())["evaluations"]
    assert {row["engine"] for row in rows} == {"OvPhysx", "Newton"}
    assert all(row["episodes"] == 4 and row["metric"] == metric and row["nonfinite"] == 0 for row in rows)
    assert all(length == 20 for row in rows for length in row["lengths"] if row["ended_early"] == 0)
    assert "EPO, table 1: EPO" in result.stdout
    assert ("32 of 947 cuboids" in result.stdout) == ("Kuka" in task)
