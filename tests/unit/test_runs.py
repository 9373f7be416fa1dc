import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.base.files import replace_file
from epo_lab.runner.checkpoint import _write, find_checkpoint, read_checkpoint
from epo_lab.runner.folder import (
    check_writable,
    checkpoints,
    find_runs,
    new_run_folder,
    read_manifest,
    task_of,
    write_manifest,
)

pytestmark = pytest.mark.unit

TASK = "Epo-Anymal-Flat-v0"


def write_checkpoint(path, content):
    replace_file(path, lambda scratch: torch.save(content, scratch))


def make_run(root, name, created, iterations, task=TASK):
    folder = root / name
    write_manifest(folder, task=task, agent="rsl_rl_cfg_entry_point")
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(manifest | {"created_at": created}))
    for iteration in iterations:
        write_checkpoint(folder / f"model_{iteration}.pt", {"iter": iteration})
    return folder


def test_latest_is_the_last_checkpoint_of_the_newest_run_of_the_task(tmp_path):
    make_run(tmp_path, "a", "2026-01-02", [0, 50])
    newest = make_run(tmp_path, "2026-01-03_10-00-00_blue", "2026-01-03", [9, 100, 20])
    make_run(tmp_path, "2026-01-02_10-00-00_sky_blue", "2026-01-02", [9])
    make_run(tmp_path, "c", "2026-01-04", [])
    make_run(tmp_path, "d", "2026-01-05", [7], task="Other-v0")
    assert find_checkpoint("latest", root=tmp_path, task=TASK) == newest / "model_100.pt"
    assert [run.name for run in find_runs(tmp_path, TASK, run_name="blue")] == [newest.name]


def test_a_run_folder_or_a_file_can_be_named(tmp_path):
    folder = make_run(tmp_path, "a", "2026-01-02", [0, 50])
    assert find_checkpoint(str(folder), root=tmp_path, task=TASK) == folder / "model_50.pt"
    assert find_checkpoint(str(folder / "model_0.pt"), root=tmp_path, task=TASK) == folder / "model_0.pt"


@pytest.mark.parametrize("selector", ["latest", "nowhere.pt"])
def test_missing_checkpoint_is_the_users_to_mend(tmp_path, selector):
    with pytest.raises(UserError, match="no "):
        find_checkpoint(selector, root=tmp_path, task=TASK)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04 half a zip"])
def test_damaged_checkpoint_is_the_users_to_mend(tmp_path, content):
    path = tmp_path / "model_1.pt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        read_checkpoint(path)


def test_truncated_and_foreign_checkpoints_are_the_users_to_mend(tmp_path):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, {"iter": 1, "weights": torch.zeros(1000)})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="damaged"):
        read_checkpoint(path)
    torch.save({"something": 1}, path)
    with pytest.raises(UserError, match="no rsl_rl checkpoint"):
        read_checkpoint(path)


def test_a_failed_write_leaves_the_old_checkpoint_and_nothing_else(tmp_path):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, {"iter": 1})
    with pytest.raises(Exception, match="pickle"):
        write_checkpoint(path, {"iter": 2, "bad": lambda: None})
    assert read_checkpoint(path)["iter"] == 1
    assert os.listdir(tmp_path) == ["model_1.pt"]


def test_other_files_are_no_checkpoints(tmp_path):
    for name in ("best.pt", ".model_3.pt.77", "model_3.txt", "model_10.pt", "model_9.pt"):
        (tmp_path / name).touch()
    assert [path.name for path in checkpoints(tmp_path)] == ["model_9.pt", "model_10.pt"]


def test_new_run_folder_is_named_but_not_made(tmp_path):
    folder = new_run_folder(tmp_path, "blue", timestamp="2026-01-01_00-00-00")
    assert folder == tmp_path / "2026-01-01_00-00-00_blue"
    assert not folder.exists()
    with pytest.raises(UserError, match="leave out the slash"):
        new_run_folder(tmp_path, "blue/green")


def test_writable_check_looks_at_the_nearest_folder_that_exists(tmp_path, monkeypatch):
    check_writable(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="cannot write to"):
        check_writable(tmp_path / "a" / "b")


def test_manifest_is_what_isaac_labs_own_commands_look_for(tmp_path):
    from isaaclab_rl.entrypoints.common import resolve_checkpoint_selector

    folder = make_run(tmp_path, "a", "2026-01-02T00:00:00+00:00", [3, 12])
    found = resolve_checkpoint_selector(
        str(tmp_path),
        "latest",
        library="rsl_rl",
        task=TASK,
        checkpoint_pattern=r"model_.*\.pt",
        metadata={"agent": "rsl_rl_cfg_entry_point"},
    )
    assert found == str(folder / "model_12.pt")


class RunsCode:
    """Leaves a trace when a pickle of it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_loading_a_checkpoint_runs_no_code_from_it(tmp_path):
    path, trace = tmp_path / "model_1.pt", tmp_path / "trace"
    write_checkpoint(path, {"iter": 1, "bad": RunsCode(trace)})
    with pytest.raises(UserError, match="could run code"):
        read_checkpoint(path)
    assert not trace.exists()


def test_random_states_of_version_01_still_load(tmp_path):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, {"iter": 1, "numpy": np.random.RandomState(3).get_state()})
    assert read_checkpoint(path)["numpy"][0] == "MT19937"


def test_a_run_remembers_the_module_that_registers_its_task(tmp_path):
    for module, task in (("", "My-Task-v0"), ("my_package.tasks", "my_package.tasks:My-Task-v0")):
        folder = tmp_path / f"run{module}"
        write_manifest(folder, task="My-Task-v0", agent="epo", module=module)
        assert task_of(read_manifest(folder)) == task
        assert read_manifest(folder)["task"] == "My-Task-v0", "by which Isaac Lab's own commands find it"
    assert task_of({}) is None


def test_a_full_disk_is_told_as_such(tmp_path, capsys):
    with pytest.raises(SystemExit) as ending, exit_on_user_error("train"):
        _write({"weights": torch.zeros(100_000)}, Path("/dev/full"))
    assert ending.value.code == 2
    assert capsys.readouterr().err.startswith("train: no space left on the disk: free some;")
