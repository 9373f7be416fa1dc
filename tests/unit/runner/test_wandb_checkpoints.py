"""Checkpoints and films that W&B keeps; without a network they wait in the file that is synced later."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import wandb

from epo_lab.base.errors import UserError
from epo_lab.commands.play import _sent
from epo_lab.commands.policy import fetched
from epo_lab.runner.wandb_writer import WandbWriter, fetch, send_film
from support.wandb_file import named, records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run folder, and no choice by W&B's own variables."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    run = tmp_path / "run"
    (run / "params").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "params/agent.yaml").write_text("seed: 1\n")
    (run / "model_7.pt").write_bytes(b"weights")
    (run / "film.mp4").write_bytes(b"film")
    return run


@pytest.mark.integration
def test_a_checkpoint_is_a_version_of_the_runs_artifact_and_a_film_is_shown(folder):
    writer = WandbWriter(str(folder), "mine", mode="offline")
    writer.save_model(str(folder / "model_7.pt"), 7)
    writer.save_video(folder / "film.mp4", 7)
    writer.stop()
    wandb.teardown()  # W&B writes what is left
    (file,) = folder.parent.glob("wandb/offline-run-*/run-*.wandb")
    found = records(file.read_bytes())
    (sent,) = [record.artifact for record in found if record.WhichOneof("record_type") == "artifact"]
    assert sent.name == f"policy-{(folder / 'wandb_id.txt').read_text().strip()}"
    assert sorted(entry.path for entry in sent.manifest.contents) == ["model_7.pt", "params/agent.yaml", "run.json"]
    assert set(sent.aliases) == {"latest", "iteration-7"} and json.loads(sent.metadata) == {"iteration": 7}
    logged = {named(item): json.loads(item.value_json) for record in found for item in record.history.item}
    assert logged["video/_type"] == "video-file", logged


@pytest.mark.unit
def test_a_checkpoint_of_wandb_becomes_a_run_folder(folder, tmp_path, monkeypatch):
    asked = []

    def artifact(name, type):
        asked.append((name, type))
        return SimpleNamespace(version="v3", download=lambda root: shutil.copytree(folder, root))

    # the service itself cannot be reached from a test
    monkeypatch.setattr(wandb, "Api", lambda: SimpleNamespace(artifact=artifact))
    monkeypatch.chdir(tmp_path)
    there = fetched("wandb:us/mine/abc:iteration-7")
    assert asked == [("us/mine/policy-abc:iteration-7", "model")]
    assert there.endswith("logs/rsl_rl/wandb/abc_v3") and Path(there, "model_7.pt").exists()
    assert fetched("latest") == "latest"


@pytest.mark.unit
@pytest.mark.parametrize("path", ["abc", "us/abc", "us/mine/a/b", ""])
def test_a_path_that_names_no_run_is_refused(path, tmp_path):
    with pytest.raises(UserError, match="wandb:entity/project/run_id"):
        fetch(path, tmp_path)


@pytest.mark.unit
def test_what_wandb_does_not_have_is_said_in_one_line(tmp_path, monkeypatch):
    def artifact(name, type):
        raise wandb.errors.CommError("not found\nmore")

    monkeypatch.setattr(wandb, "Api", lambda: SimpleNamespace(artifact=artifact))
    with pytest.raises(UserError, match="W&B has no checkpoint us/mine/policy-abc:latest for this login: not found"):
        fetch("us/mine/abc", tmp_path)


@pytest.mark.integration
def test_a_film_that_is_made_later_is_sent_to_the_same_run(folder):
    assert send_film(folder, folder / "film.mp4") is None, "this run was not logged to W&B"
    assert _sent(folder, folder / "film.mp4") == ""
    settings = "logger: {class_name: x, project_name: mine, entity: us, mode: offline}\n"
    (folder / "params/agent.yaml").write_text(settings)
    (folder / "curves.csv").write_text("iteration,Perf/total_steps\n0,10\n1,20\n")
    writer = WandbWriter(str(folder), "mine", entity="us", mode="offline")
    writer.add_scalar("Perf/total_steps", 20.0, 1)
    writer.stop()
    run_id = (folder / "wandb_id.txt").read_text().strip()
    (folder / ".lock").touch()
    assert _sent(folder, folder / "film.mp4") == "", "a run that goes on finds it by itself"
    (folder / ".lock").unlink()
    assert _sent(folder, folder / "film.mp4") == f", sent to the W&B run {run_id}"
    wandb.teardown()
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    found = records(file.read_bytes())
    (run,) = {(r.run.run_id, r.run.project, r.run.entity) for r in found if r.WhichOneof("record_type") == "run"}
    assert run == (run_id, "mine", "us")
    logged = {named(item): json.loads(item.value_json) for record in found for item in record.history.item}
    assert logged["video/_type"] == "video-file" and logged["_step"] == 2


@pytest.mark.unit
def test_a_film_that_wandb_does_not_take_is_said_in_one_line(folder, monkeypatch):
    (folder / "params/agent.yaml").write_text("logger: {class_name: x, project_name: mine}\n")
    (folder / "wandb_id.txt").write_text("abc\n")

    def init(**options):
        assert (options["id"], options["resume"]) == ("abc", "allow")
        raise wandb.errors.CommError("no network\nmore")

    monkeypatch.setattr(wandb, "init", init)
    said = _sent(folder, folder / "film.mp4")
    assert said.startswith(" (W&B did not take") and said.endswith("film.mp4: no network)")
