"""Policies that come with the package, and how one is put there."""

import pytest
import torch
import yaml

from epo_lab.base.errors import UserError
from epo_lab.diagnostics.deceptive import DeceptiveEnv
from epo_lab.runner import pretrained
from epo_lab.runner.folder import find_runs, read_manifest, read_settings
from epo_lab.runner.runner import EpoRunner
from support.equality import assert_same
from support.toy_env import settings

pytestmark = pytest.mark.unit

TASK = "Epo-Diag-Deceptive-v0"


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "package")
    cfg = settings(num_agents=4)
    EpoRunner(DeceptiveEnv(16, seed=1), cfg, log_dir=str(tmp_path / "run")).learn(1)
    checkpoint = tmp_path / "run" / "model_0.pt"
    return checkpoint, pretrained.pack(checkpoint, cfg, task=TASK, agent="epo", origin="one iteration")


def test_a_packed_policy_is_small_and_loads_without_running_code(packed):
    checkpoint, path = packed
    content = torch.load(path, weights_only=True)
    assert path.stat().st_size < 0.7 * checkpoint.stat().st_size, "no optimizer, no critic, no state of the run"
    assert content["num_members"] == 4 and content["task"] == TASK
    assert_same(content["actor_state_dict"], torch.load(checkpoint, weights_only=False)["actor_state_dict"])


def test_it_unpacks_to_a_run_folder_that_is_nobodys_latest_run(packed, tmp_path):
    folder = pretrained.unpack(TASK, tmp_path / "logs")
    assert read_manifest(folder)["task"] == TASK
    assert read_settings(folder)["actor"]["hidden_dims"] == [16, 16]
    assert (folder / "model_0.pt").is_file()
    assert find_runs(tmp_path / "logs", TASK) == []


def test_a_task_without_one_says_which_have(packed, tmp_path):
    with pytest.raises(UserError, match=f"no pretrained policy of Epo-Diag-Cycle-v0; there are: {TASK}"):
        pretrained.unpack("Epo-Diag-Cycle-v0", tmp_path)
    assert not (tmp_path / "pretrained").exists()


def test_what_is_too_large_is_refused_and_removed(packed, monkeypatch):
    checkpoint, path = packed
    monkeypatch.setattr(pretrained, "MOST_BYTES", 1000)
    with pytest.raises(UserError, match="more than 1,000"):
        pretrained.pack(checkpoint, {}, task=TASK, agent="epo", origin="")
    assert not path.exists()


def test_every_policy_in_the_package_is_small_weights_and_documented():
    for path in pretrained.FOLDER.glob("*.pt"):
        assert path.stat().st_size <= 2_000_000
        content = torch.load(path, weights_only=True)
        assert content["task"] == path.stem and len(content["origin"]) > 20
        assert set(content["settings"]) >= {"actor", "critic", "obs_groups", "algorithm"}
        yaml.safe_dump(content["settings"])
