"""EnvPool's tasks from the command line: every agent trains; train, resume, evaluate, play, report, two processes."""

import json
import subprocess
import sys

import pytest
import torch

from epo_lab.commands.backends.base import make_backend
from epo_lab.commands.tasks import find_task
from epo_lab.runner.curves import read_curves
from epo_lab.runner.runner import EpoRunner
from support.command import ROOT, script

pytest.importorskip("envpool", reason="EnvPool is not installed (./isaaclab.sh -i envpool)")
pytestmark = pytest.mark.integration

TASK = "EnvPool/InvertedPendulum-v4"
SMALL = ["--num_envs", "8", "agent.num_steps_per_env=16", "agent.algorithm.num_mini_batches=2"]
ON_POLICY = ("ppo", "epo", "sapg", "cpo", "pbt")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a run of PPO of three iterations."""
    folder = tmp_path_factory.mktemp("envpool")
    result = script("train", "--task", TASK, "--agent", "ppo", *SMALL, "--max_iterations", "3", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "EnvPool on cpu" in result.stdout
    return folder


def the_run(folder):
    (run,) = (folder / "logs/rsl_rl/envpool/InvertedPendulum-v4").iterdir()
    return run


def test_training_logs_the_return_of_episodes(trained):
    _, rows = read_curves(the_run(trained) / "curves.csv")
    assert len(rows) == 3
    # a reward of 1 a step, and a pole that random actions let fall soon
    assert all(3.0 < float(row["Metrics/episode_return"]) < 50.0 for row in rows)
    assert float(rows[-1]["Metrics/episode_return"]) > 0.0
    assert rows[-1]["Perf/total_steps"].startswith("384")
    assert "reset_noise_scale" in (the_run(trained) / "params/env.yaml").read_text()


def test_evaluate_prints_and_writes_a_score(trained):
    options = ["--seeds", "2", "--num_envs", "6", "env.max_episode_steps=80"]
    result = script("evaluate", "--task", TASK, *options, cwd=trained)
    assert result.returncode == 0, result.stderr
    assert "12 episodes" in result.stdout
    assert "max_episode_steps 80 instead of 1000" in result.stdout
    scores = json.loads((the_run(trained) / "evaluation.json").read_text())["evaluations"][0]
    assert len(scores["scores"]) == 12
    assert scores["scores"] == scores["returns"] == [float(length) for length in scores["lengths"]]


def test_play_says_that_it_cannot_film(trained, refuse):
    refuse("play", "--task", TASK, "--checkpoint", str(the_run(trained)), "--video", says="cannot be filmed")


def test_play_prints_the_score_and_exports_the_policy(trained):
    played = script("play", "--task", TASK, "--num_envs", "4", "--export", cwd=trained)
    assert played.returncode == 0, played.stderr
    assert "Metrics/episode_return" in played.stdout
    policy = torch.jit.load(the_run(trained) / "exported/policy.pt")
    assert policy(torch.zeros(5, 4)).shape == (5, 1)


def test_the_report_is_written(trained):
    result = script("report", str(the_run(trained)), cwd=trained)
    assert result.returncode == 0, result.stderr
    assert "episode_return" in (the_run(trained) / "report.html").read_text()


def test_a_resumed_run_says_that_episodes_begin_anew(trained):
    result = script("train", "--task", TASK, "--agent", "ppo", *SMALL, "--max_iterations", "4", "--resume", cwd=trained)
    assert result.returncode == 0, result.stderr
    assert "Every environment begins a new episode" in result.stdout
    _, rows = read_curves(the_run(trained) / "curves.csv")
    assert [int(float(row["Perf/total_steps"])) for row in rows] == [128, 256, 384, 512]


def test_two_processes_train_one_population(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29683"]
        + [str(ROOT / "scripts/train.py"), "--task", TASK, *SMALL, "--max_iterations", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "2 processes" in result.stdout
    _, rows = read_curves(the_run(tmp_path) / "curves.csv")
    assert int(float(rows[-1]["Perf/total_steps"])) == 2 * 2 * 8 * 16


@pytest.mark.slow
def test_agents_are_compared(tmp_path):
    options = ["--tasks", TASK, "--agents", "ppo,epo", "--num_envs", "8", "--max_iterations", "2", "--jobs", "1"]
    result = script("compare", *options, *SMALL[2:], "--seeds", "1", "--output", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    finals = [line for line in (tmp_path / "out/scores.csv").read_text().splitlines() if ",final," in line]
    assert len(finals) == 2


@pytest.mark.parametrize("agent", ON_POLICY)
def test_every_agent_trains(agent, tmp_path):
    backend = make_backend(find_task(TASK))
    options = dict.fromkeys(("profile", "viz", "device", "num_envs", "max_iterations", "seed"))
    args = type("Options", (), {**options, "agent": agent, "num_envs": 24})()
    backend.resolve(args, ["agent.num_steps_per_env=8"], ROOT / "config")
    backend.check_training()
    with backend.open() as env:
        runner = EpoRunner(env, backend.settings, log_dir=str(tmp_path), metric="Metrics/episode_return")
        before = [value.clone() for value in runner.alg.policy().parameters()]
        runner.learn(2)
        after = list(runner.alg.policy().parameters())
        assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
        assert all(value.isfinite().all() for value in after)
