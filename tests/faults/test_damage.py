"""Damaged files: found, set aside and said; what is whole is used."""

import os
import random
import shutil
import struct
import time
import zipfile

import pytest
import torch

from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.files import remove_scratch, replace_text
from epo_lab.diagnostics.deceptive import DeceptiveEnv
from epo_lab.report.page import make_page
from epo_lab.report.record import read_run
from epo_lab.runner.checkpoint import clear_killed, mend_run, newest_whole, read_checkpoint
from epo_lab.runner.folder import checkpoints, read_manifest, read_settings
from epo_lab.runner.runner import EpoRunner
from support.equality import assert_same
from support.toy_env import settings

pytestmark = pytest.mark.integration

POPULATION = {
    "num_agents": 8,
    "fitness__source": "extras:score",
    "evolution__trigger": "interval",
    "evolution__warmup_steps": 16,
    "evolution__interval_steps": 16,
    "census_interval": 2,
}


def make_runner(folder, keep=0):
    torch.manual_seed(3)
    cfg = settings(**POPULATION) | {"save_interval": 1, "num_steps_per_env": 16, "keep_checkpoints": keep}
    return EpoRunner(DeceptiveEnv(64, seed=3), cfg, log_dir=str(folder))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    make_runner(folder).learn(10)
    (folder / "run.json").write_text('{"task": "Some-Task-v0", "metadata": {"agent": "epo"}, "request": {}}')
    (folder / "params").mkdir()
    (folder / "params/agent.yaml").write_text("actor: {hidden_dims: [16, 16]}\nseed: 3\n")
    (folder / "environment.json").write_text('{"python": "3.12"}')
    (folder / "command.txt").write_text("train\n")
    return folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy; what is a link there is one here."""
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    (folder / "best.pt").unlink()
    best = torch.load(trained / "best.pt", weights_only=True)["iter"]
    (folder / "best.pt").hardlink_to(folder / f"model_{best}.pt")
    return folder


def flip(path, position, bit=0):
    data = bytearray(path.read_bytes())
    data[position % len(data)] ^= 1 << bit
    path.write_bytes(bytes(data))


def middle_of_largest_record(path):
    """Return a position that holds numbers, whatever the lengths of the records before it."""
    with zipfile.ZipFile(path) as file:
        record = max(file.infolist(), key=lambda info: info.file_size)
    header = path.read_bytes()[record.header_offset :][:30]
    name, extra = struct.unpack("<HH", header[26:30])
    return record.header_offset + 30 + name + extra + record.file_size // 2


def test_no_flipped_bit_of_a_checkpoint_loads_silently(run):
    path = run / "model_9.pt"
    whole, content, draw, found = path.read_bytes(), read_checkpoint(path), random.Random(0), 0
    for number in range(150):
        # a third each: anywhere, among the first records, and in the table at the end
        low, high = [(0, len(whole)), (0, 4000), (len(whole) - 4000, len(whole))][number % 3]
        flip(path, draw.randrange(low, high), draw.randrange(8))
        try:
            assert_same(read_checkpoint(path), content)
        except UserError:
            found += 1
        path.write_bytes(whole)
    assert found > 120, "most bytes matter; the rest is padding"


def test_the_newest_whole_checkpoint_is_found_and_the_damaged_ones_are_named(run):
    assert newest_whole(run) == (run / "model_9.pt", "")
    flip(run / "model_9.pt", middle_of_largest_record(run / "model_9.pt"))
    (run / "model_8.pt").write_bytes(b"")
    path, note = newest_whole(run)
    assert path == run / "model_7.pt"
    assert note.startswith("model_9.pt, model_8.pt cannot be read: going on from model_7.pt")
    for path in checkpoints(run):
        path.write_bytes(b"x")
    with pytest.raises(UserError, match=r"model_9.pt .* damaged"):
        newest_whole(run)


def test_a_run_goes_on_from_an_earlier_checkpoint_as_if_the_later_ones_had_never_been(run, trained, tmp_path, capsys):
    runner = make_runner(run)
    runner.resume(str(run / "model_6.pt"))
    # killed here: log and checkpoints agree
    assert [path.name for path in checkpoints(run)] == [f"model_{number}.pt" for number in range(7)]
    assert len((run / "curves.csv").read_text().splitlines()) == 8
    assert read_checkpoint(run / "model_6.pt")["run"]["best_iteration"] is None, "no episode had ended"
    aside = ["best.pt", "model_7.pt", "model_8.pt", "model_9.pt"]
    assert sorted(path.name for path in (run / "aside").iterdir()) == aside
    assert "model_7.pt to model_9.pt came after model_6.pt" in capsys.readouterr().out
    again = make_runner(run)
    again.resume(str(newest_whole(run)[0]))
    again.learn(3)
    contents = [torch.load(folder / "model_9.pt", weights_only=True) for folder in (run, trained)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    assert (run / "lineage.jsonl").read_text() == (trained / "lineage.jsonl").read_text()


def test_a_kill_while_checkpoints_are_set_aside_leaves_a_run_that_can_go_on(run, monkeypatch):
    from epo_lab.runner import runner as module

    monkeypatch.setattr(module, "mend_run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        make_runner(run).resume(str(run / "model_6.pt"))
    newest = newest_whole(run)[0]
    assert newest.name == "model_6.pt"
    assert len((run / "curves.csv").read_text().splitlines()) > 7, "the log reaches at least as far as the checkpoint"


def test_a_best_checkpoint_that_was_not_linked_in_time_is_found_again(run):
    best = read_checkpoint(run / "model_9.pt")["run"]["best_iteration"]
    for damage in ((run / "best.pt").unlink, lambda: replace_text(run / "best.pt", "nothing")):
        damage()
        replace_text(run / ".curves.csv.77.partial", "half a")
        mend_run(run, keep=0)
        assert read_checkpoint(run / "best.pt")["iter"] == best
        assert not list(run.glob(".*.partial"))
    mend_run(run, keep=2)
    assert [path.name for path in checkpoints(run)] == ["model_8.pt", "model_9.pt"]


def test_the_best_of_iterations_that_are_done_again_is_set_aside_if_its_forerunner_is_gone(run):
    content = torch.load(run / "model_9.pt", weights_only=True)
    content["run"]["best_iteration"] = 9
    torch.save(content, run / "model_9.pt")
    (run / "best.pt").unlink()
    (run / "best.pt").hardlink_to(run / "model_9.pt")
    earlier = torch.load(run / "model_7.pt", weights_only=True)
    earlier["run"]["best_iteration"] = 5
    torch.save(earlier, run / "model_7.pt")
    (run / "model_5.pt").unlink()
    make_runner(run).resume(str(run / "model_7.pt"))
    assert not (run / "best.pt").exists() and (run / "aside/best.pt").is_file()


@pytest.mark.parametrize("name", ["lineage.jsonl", "population.jsonl", "curves.csv"])
@pytest.mark.parametrize("line", ["", "{", '{"iteration": 3}', "3,4", '"', "\x00\x00"])
def test_a_bad_line_is_left_out_of_the_report_and_set_aside_by_a_resumed_run(run, capsys, name, line):
    lines = (run / name).read_text().splitlines()
    (run / name).write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    record = read_run(run)
    assert record.damaged == [f"{run / name}: 1 damaged line left out"]
    assert "<html" in make_page([record], "Metrics/score", script="")

    make_runner(run).resume(str(run / "model_9.pt"))
    assert f"{name}: 1 damaged line set aside" in capsys.readouterr().out
    assert (run / name).read_text().splitlines() == lines
    assert (run / "aside" / name).read_text() == f"{line}\n"
    assert read_run(run).damaged == []


def test_a_table_without_its_header_is_set_aside_whole(run, capsys):
    flip(run / "curves.csv", 2)
    with pytest.raises(UserError, match="no row that can be read"):
        read_run(run)
    runner = make_runner(run)
    runner.resume(str(run / "model_8.pt"))
    assert "curves.csv: 11 damaged lines set aside" in capsys.readouterr().out
    runner.learn(1)
    assert (run / "curves.csv").read_text().startswith("iteration,")


FILES = ["run.json", "environment.json", "params/agent.yaml", "command.txt", "curves.csv", "lineage.jsonl"]
FILES += ["population.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_damage_of_a_file_ends_in_a_traceback(run, name):
    path, draw = run / name, random.Random(name)
    whole = path.read_bytes()
    for number in range(20):
        place = draw.randrange(len(whole))
        path.write_bytes(
            [whole[:place], whole[:place] + b"\xff\x00" + whole[place:], b"", b"\n\n", b"[1]\n"][number % 5]
        )
        if number >= 10:
            path.write_bytes(whole)
            flip(path, place, draw.randrange(8))
        try:
            read_manifest(run)
            read_settings(run)
            make_page([read_run(run)], "Metrics/score", script="")
        except UserError as error:
            assert "\n" not in str(error)


def test_scratch_files_of_a_killed_process_are_removed_everywhere_in_the_run(tmp_path):
    (tmp_path / "params").mkdir()
    for path in (tmp_path / ".model_7.pt.1.partial", tmp_path / "params/.env.yaml.1.partial", tmp_path / "model_7.pt"):
        path.touch()
    remove_scratch(tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["model_7.pt"]


def test_what_a_run_killed_before_its_first_checkpoint_left_is_removed_by_a_later_start(tmp_path, monkeypatch):
    monkeypatch.setattr("epo_lab.runner.checkpoint.ABANDONED", 0.2)
    names = (".model_0.pt.1.partial", "params/.env.yaml.1.partial", ".replay.pt.next", "run.json")

    def leave(run):
        (tmp_path / run / "params").mkdir(parents=True)
        for name in names:
            (tmp_path / run / name).touch()

    leave("killed")
    leave("resumable")
    (tmp_path / "resumable/model_0.pt").touch()
    time.sleep(0.3)
    leave("at_work")
    clear_killed(tmp_path)
    left = {
        run: sorted(path.name for path in (tmp_path / run).rglob("*") if path.is_file()) for run in os.listdir(tmp_path)
    }
    whole = sorted(name.split("/")[-1] for name in names)
    assert left == {"killed": ["run.json"], "at_work": whole, "resumable": sorted([*whole, "model_0.pt"])}


def test_models_that_are_not_finite_are_never_saved(run):
    runner = make_runner(run)
    runner.resume(str(run / "model_9.pt"))
    before = {path.name: path.read_bytes() for path in run.glob("*.pt")}
    with torch.no_grad():
        next(runner.alg.critic.parameters())[0] = torch.nan
    with pytest.raises(NonFiniteUpdateError, match=r"critic_state_dict.* not finite any more.*model_9.pt is the last"):
        runner.save(str(run / "model_10.pt"))
    assert {path.name: path.read_bytes() for path in run.glob("*.pt")} == before
    assert not list(run.glob(".*.partial"))
