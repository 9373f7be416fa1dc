"""One process a run folder, and a resumed run that is the run it was."""

import argparse
import json

import pytest
import yaml

from epo_lab.base.errors import UserError
from epo_lab.commands.train import train
from epo_lab.runner.folder import claim_run, discard_run, log_root
from support.command import ROOT

pytestmark = pytest.mark.unit

TASK = "Epo-Diag-Smooth-v0"


def options(**given):
    names = [
        "agent",
        "seed",
        "num_envs",
        "max_iterations",
        "profile",
        "experiment",
        "experiment_name",
        "run_name",
        "device",
        "viz",
        "logger",
        "log_project_name",
        "checkpoint",
    ]
    own = {"task": TASK, "resume": False, "auto_resume": False, "verbose": True}
    return argparse.Namespace(**{**dict.fromkeys(names), **own, **given})


def test_two_runs_of_one_second_have_folders_of_their_own_and_one_keeps_others_out(tmp_path):
    with claim_run(tmp_path / "run", new=True) as first, claim_run(tmp_path / "run", new=True) as second:
        assert (first.name, second.name) == ("run", "run-2")
        with pytest.raises(UserError, match="is being trained by process"), claim_run(first, new=False):
            pass
        (first / "model_0.pt").touch()
    assert first.is_dir() and not second.exists(), "a run that kept nothing is gone"
    with claim_run(first, new=False):
        pass


def test_a_resumed_run_takes_its_settings_from_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    override = "agent.algorithm.learning_rate=3e-4"
    train(options(agent="epo_paper", seed=7, num_envs=64, max_iterations=2), [override], ROOT / "config")
    (folder,) = (tmp_path / "logs/rsl_rl/diag_smooth").iterdir()
    before = yaml.safe_load((folder / "params/agent.yaml").read_text())
    assert json.loads((folder / "run.json").read_text())["request"]["overrides"] == [override]

    train(options(resume=True, checkpoint=str(folder), max_iterations=3), [], ROOT / "config")
    after = yaml.safe_load((folder / "params/agent.yaml").read_text())
    assert (after["seed"], after["algorithm"]) == (7, before["algorithm"])
    assert yaml.safe_load((folder / "params/env.yaml").read_text())["num_envs"] == 64
    printed = capsys.readouterr().out
    assert "agent epo_paper" in printed and "changed by this command: --max_iterations 3 (was 2)" in printed

    with pytest.raises(UserError, match="is a run of --agent epo_paper: leave out --agent sapg"):
        train(options(resume=True, checkpoint=str(folder), max_iterations=4, agent="sapg"), [], ROOT / "config")
    fewer = ["agent.algorithm.num_agents=4"]
    with pytest.raises(SystemExit):
        train(options(resume=True, checkpoint=str(folder), max_iterations=4), fewer, ROOT / "config")
    assert "agents, this run 4: set agent.algorithm.num_agents=" in capsys.readouterr().err
    assert yaml.safe_load((folder / "params/agent.yaml").read_text()) == after, "nothing is overwritten"


def test_a_run_goes_on_from_the_newest_checkpoint_that_is_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = options(agent="ppo", num_envs=16, max_iterations=3)
    train(small, ["agent.save_interval=1"], ROOT / "config")
    (folder,) = (tmp_path / "logs/rsl_rl/diag_smooth").iterdir()
    data = bytearray((folder / "model_2.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "model_2.pt").write_bytes(bytes(data))
    capsys.readouterr()
    train(options(resume=True, checkpoint=str(folder)), [], ROOT / "config")
    said = capsys.readouterr().out
    assert "model_2.pt cannot be read: going on from model_1.pt, the newest checkpoint that is whole" in said
    assert "model_2.pt came after model_1.pt, from which this run goes on: set aside" in said
    assert len((folder / "curves.csv").read_text().splitlines()) == 4
    with pytest.raises(UserError, match="is damaged or none"):
        train(options(resume=True, checkpoint=str(folder / "aside/model_2.pt"), max_iterations=9), [], ROOT / "config")


@pytest.mark.parametrize("experiment", ["flat", "envpool/Hopper-v4", "a/b/c"])
def test_a_discarded_run_leaves_no_empty_folder_above_it(experiment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = log_root(experiment) / "run"
    run.mkdir(parents=True)
    discard_run(run)
    assert list(tmp_path.iterdir()) == []
    run.mkdir(parents=True)
    (tmp_path / "logs/rsl_rl/other").mkdir()
    discard_run(run)
    assert [path.name for path in (tmp_path / "logs/rsl_rl").iterdir()] == ["other"]
