"""One population on a physics task in two processes, as on two GPUs; here over gloo on CPUs."""

import subprocess
import sys

import pytest
import torch

from epo_lab.runner.curves import read_curves
from support.command import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TASK, ENVS, STEPS = "Epo-Anymal-Flat-v0", 8, 24


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_processes")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29673"]
    command += [str(ROOT / "scripts/train.py"), "--task", TASK, "--agent", "epo", "--num_envs", str(ENVS)]
    command += ["--max_iterations", "2", "agent.algorithm.num_agents=4", f"agent.num_steps_per_env={STEPS}"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=580)
    assert result.returncode == 0, result.stderr[-3000:]
    return result, next((folder / "logs/rsl_rl").glob("*/*"))


def test_the_first_process_speaks_and_writes_for_both(run):
    result, folder = run
    assert result.stdout.count("Run folder:") == 1
    assert "2 processes" in result.stdout
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


def test_the_environments_of_both_count(run):
    _, folder = run
    _, rows = read_curves(folder / "curves.csv")
    assert [int(float(row["Perf/total_steps"])) for row in rows] == [2 * ENVS * STEPS, 4 * ENVS * STEPS]


def test_the_checkpoint_plays_without_the_other_process(run):
    _, folder = run
    content = torch.load(folder / "model_1.pt", weights_only=False)
    assert content["iter"] == 1
    assert all(torch.isfinite(value).all() for value in content["actor_state_dict"].values())
