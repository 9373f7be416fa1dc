"""What was tried and held: secrets, markup in names, who can watch, and words that shells must not read."""

import json
import os
import subprocess
import sys

import pytest

from epo_lab.cli.play import make_parser as play
from epo_lab.cli.report import make_parser as report
from epo_lab.cli.train import main as train
from epo_lab.cli.train import make_parser
from epo_lab.report.page import make_page
from epo_lab.report.record import read_run
from support.command import ROOT

pytestmark = pytest.mark.unit

EVIL = "</script><script>alert(1)</script>"
WORDS = ["a b", "$(touch harm)", "`touch harm`", "x;touch harm", "it's", '"', "*", "\\", "--run_name=é"]


def test_no_variable_of_the_environment_reaches_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    for name in ("WANDB_API_KEY", "NEPTUNE_API_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_PASSWORD"):
        monkeypatch.setenv(name, "s3cret-4711")
    assert train(["--task", "Epo-Diag-Smooth-v0", "--agent", "ppo", "--num_envs", "16", "--max_iterations", "1"]) == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if b"s3cret-4711" in path.read_bytes()]
    captured = capsys.readouterr()
    assert "s3cret-4711" not in captured.out + captured.err


def test_markup_in_any_name_is_text_on_the_page(tmp_path):
    folder = tmp_path / "<b>run"
    (folder / "params").mkdir(parents=True)
    (folder / "videos").mkdir()
    tag = f"Episode_Reward/{EVIL}"
    (folder / "curves.csv").write_text(f"iteration,Perf/total_steps,Metrics/score,{tag}\n0,10,1,1\n1,20,2,2\n")
    (folder / "run.json").write_text(
        json.dumps({"task": EVIL, "metadata": {"agent": EVIL}, "request": {"overrides": [f"agent.x={EVIL}"]}})
    )
    (folder / "command.txt").write_text(f"train --task {EVIL}\n")
    (folder / "environment.json").write_text(json.dumps({EVIL: EVIL}))
    (folder / "params/agent.yaml").write_text(f"name: {EVIL}\n")
    (folder / "videos" / "<img src=x onerror=alert(1)>.gif").write_bytes(b"GIF89a")
    page = make_page([read_run(folder)], "Metrics/score", script="")
    assert "<script>alert" not in page and "<img src=x" not in page and "<b>run" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_nobody_else_can_watch_unless_asked_for():
    for parser, words in ((make_parser(), []), (play(), []), (report(), ["run"])):
        assert parser.parse_args(words).host == "127.0.0.1"


@pytest.mark.parametrize("name", ["torchrun.sh", "apptainer.sh"])
def test_words_pass_through_the_cluster_scripts_as_they_are(tmp_path, name):
    shown = tmp_path / "show args"
    shown.write_text('#!/bin/sh\nfor word in "$@"; do printf \'%s\\0\' "$word"; done\n')
    shown.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LAUNCH": str(shown), "APPTAINER": str(shown)}
    environment |= {"EPO_PROCESSES": "1", "EPO_RENDEZVOUS": "localhost:1", "EPO_IMAGE": "an image.sif"}
    script = ROOT / "docker/cluster" / name
    done = subprocess.run([script, *WORDS], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[-len(WORDS) - 1 : -1] == WORDS
    assert not (tmp_path / "harm").exists()
