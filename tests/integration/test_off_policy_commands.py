"""Off-policy agents from the command line: train, kill, resume, play, evaluate, compare; and Isaac Lab's commands."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from epo_lab.runner.folder import checkpoints
from support.command import ROOT, isaaclab, script
from support.equality import assert_same

pytestmark = pytest.mark.integration

TASK = "Epo-Diag-Smooth-v0"
SMALL = ["agent.save_interval=2", "agent.algorithm.warmup_steps=300", "agent.algorithm.batch_size=32"]
LONG = ["--max_iterations", "60"]


def train(folder, *options, agent="sac"):
    return script("train", "--task", TASK, "--agent", agent, *SMALL, *options, cwd=folder)


def the_run(folder, name):
    (found,) = folder.glob(f"logs/rsl_rl/diag_smooth/*_{name}")
    return found


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    assert train(tmp_path, "--run_name", "whole", *LONG).returncode == 0
    command = [sys.executable, str(ROOT / "scripts/train.py"), "--task", TASK, "--agent", "sac", *SMALL]
    process = subprocess.Popen(
        [*command, "--run_name", "killed", *LONG], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 200
    while len(list(tmp_path.glob("logs/rsl_rl/diag_smooth/*_killed/model_*.pt"))) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed = the_run(tmp_path, "killed")
    assert checkpoints(killed)[-1].stem != "model_59", "killed too late to show anything"
    resumed = train(tmp_path, "--run_name", "killed", *LONG, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    runs = the_run(tmp_path, "whole"), killed
    contents = [torch.load(run / "model_59.pt", weights_only=True) for run in runs]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    assert_same(*[torch.load(run / "replay.pt", weights_only=True) for run in runs])


@pytest.mark.parametrize("agent", ["sac_classic", "pql"])
def test_a_policy_is_played_exported_and_evaluated(tmp_path, agent):
    assert train(tmp_path, "--max_iterations", "12", "--run_name", "one", agent=agent).returncode == 0
    run = the_run(tmp_path, "one")
    played = script("play", "--checkpoint", str(run), "--num_envs", "64", "--export", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "replay:" not in played.stdout, "playing takes no memory for one"
    policy = torch.jit.load(str(run / "exported/policy.pt"))
    assert policy(torch.randn(7, 5)).abs().max() <= 1.0
    evaluated = script("evaluate", "--checkpoint", str(run), "--num_envs", "64", cwd=tmp_path)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads((run / "evaluation.json").read_text())["evaluations"]


def test_agents_of_both_families_are_compared(tmp_path):
    options = ["--agents", "ppo,td3", "--tasks", TASK, "--seeds", "1", "--max_iterations", "6"]
    compared = script("compare", *options, cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert "td3" in compared.stdout


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("agent.algorithm.n_step=9", "n_step must be between 1 and 8, not 9"),
        ("agent.algorithm.num_mini_batches=4", "has no 'num_mini_batches'"),
        ("agent.algorithm.replay.size=10", "replay.size must be at least 128"),
    ],
)
def test_bad_input_gets_one_line(refuse, tmp_path, setting, says):
    refuse("train", "--task", TASK, "--agent", "sac", setting, says=says)
    assert not (tmp_path / "logs").exists()


def test_isaac_labs_own_command_trains_sac(tmp_path):
    options = ["--task", "Epo-Anymal-Flat-v0", "--agent", "rsl_rl_sac_cfg_entry_point", "--device", "cpu"]
    settings = ["agent.num_steps_per_env=8", "agent.algorithm.warmup_steps=64", "env.compute_final_obs=true"]
    more = ["presets=cpu", "agent.algorithm.batch_size=32", "agent.algorithm.replay.size=2000"]
    trained = isaaclab("train", *options, "--num_envs", "8", "--max_iterations", "3", *settings, *more, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr[-3000:]
    assert "replay: 2,000 transitions" in trained.stdout and "Replay/transitions" in trained.stdout
    (checkpoint,) = tmp_path.glob("logs/rsl_rl/*/*/model_2.pt")
    parts = torch.load(checkpoint, weights_only=True)["parts"]
    assert parts["clock"]["gradient_steps"] > 0
