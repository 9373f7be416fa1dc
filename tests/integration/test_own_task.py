"""The Isaac Lab task of docs/extending.md, trained as the page says."""

import json
import os
import subprocess
import sys

import pytest

from support.command import ROOT
from support.snippets import write_snippets

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_own_task_trains_with_its_own_fitness(tmp_path):
    write_snippets("docs/extending.md", tmp_path)
    command = [sys.executable, str(ROOT / "scripts/train.py"), "--task", "my_task:My-Backwards-v0", "--num_envs", "8"]
    command += ["--max_iterations", "2", "agent.algorithm.num_agents=4", "env.episode_length_s=0.2"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    pipes = {"capture_output": True, "text": True, "timeout": 580}
    result = subprocess.run(command, check=False, cwd=tmp_path, env=environment, **pipes)
    assert result.returncode == 0, result.stderr[-3000:]
    run = next(tmp_path.glob("logs/rsl_rl/my_backwards/*"))
    assert json.loads((run / "run.json").read_text())["task"] == "My-Backwards-v0"
    header, *rows = [line.split(",") for line in (run / "curves.csv").read_text().splitlines()]
    fitness = float(dict(zip(header, rows[-1], strict=True))["Master/fitness"])
    assert 0.0 <= fitness < 1.0, "metres from where it began, after a fifth of a second"
    play = [sys.executable, str(ROOT / "scripts/play.py"), "--checkpoint", str(run), "--num_envs", "2"]
    played = subprocess.run([*play, "env.episode_length_s=0.2"], check=False, cwd=tmp_path, env=environment, **pipes)
    assert played.returncode == 0, played.stderr[-3000:]
    assert played.stdout.splitlines()[1].startswith("My-Backwards-v0, "), "the run folder knows the module of its task"
