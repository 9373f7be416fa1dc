"""Where commands write: nowhere but where the user said, and never over a device; and what they note about the code."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.cli.curves import main as curves
from epo_lab.runner.code_state import store_code_state
from epo_lab.runner.folder import log_root, new_run_folder, output_file

pytestmark = pytest.mark.unit


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "curves.csv").write_text("iteration,loss\n0,1\n1,2\n")
    return folder


def test_links_are_followed(tmp_path, run, monkeypatch):
    target, link = tmp_path / "target.png", tmp_path / "link.png"
    link.symlink_to(target)
    assert curves([str(run), "--tags", "loss", "--output", str(link)]) == 0
    assert link.is_symlink() and target.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.png", "run", "target.png"]


@pytest.mark.parametrize("make", ["device", "link to a device", "pipe", "folder", "loop", "long", "no name", "nul"])
def test_what_is_no_ordinary_file_is_refused_and_left_alone(tmp_path, run, capsys, make):
    path = tmp_path / "out.png"
    if make == "device":
        path = Path(os.devnull)
    elif make == "link to a device":
        path.symlink_to(os.devnull)
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    elif make == "loop":
        path.symlink_to(path)
    else:
        path = {"long": tmp_path / ("x" * 240 + ".png"), "no name": Path("/"), "nul": tmp_path / "a\0.png"}[make]
    with pytest.raises(SystemExit) as ending:
        curves([str(run), "--tags", "loss", "--output", str(path)])
    error = capsys.readouterr().err
    assert ending.value.code == 2 and error.count("\n") == 1 and "--output" in error, error
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_the_outputs_of_all_commands_go_through_one_check(tmp_path):
    with pytest.raises(UserError, match="--output /dev/null is no ordinary file"):
        output_file(Path(os.devnull))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        output_file(tmp_path / "file" / "page.html")
    source = Path(output_file.__code__.co_filename).parents[1]
    for name in ("commands/evaluate.py", "commands/report.py", "commands/compare.py", "cli/curves.py"):
        assert "output_file(" in (source / name).read_text(), name


@pytest.mark.parametrize("name", ["../../x", "..", "/tmp/x", "a//b", "a/../../b", "a\nb", "x" * 300, "a\0b"])
def test_an_experiment_stays_below_the_logs(name):
    with pytest.raises(UserError, match="must name a folder below logs/rsl_rl"):
        log_root(name)
    assert log_root("compare/My-Task v0").parts[-4:] == ("logs", "rsl_rl", "compare", "My-Task v0")


@pytest.mark.parametrize("name", ["a/b", "../x", "a\nb", "x" * 300, "é" * 100, "\x1b[1m"])
def test_a_run_name_is_a_part_of_a_folders_name(tmp_path, name):
    with pytest.raises(UserError, match="folder's name"):
        new_run_folder(tmp_path, name)
    assert new_run_folder(tmp_path, "..", timestamp="t").parent == tmp_path


def repository(folder):
    folder.mkdir()
    for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "code.py").write_text("x = 1\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=folder, check=True)
    return folder / "code.py"


def test_bytes_of_any_encoding_in_the_checkout_are_recorded(tmp_path, capsys):
    code = repository(tmp_path / "checkout")
    code.write_bytes(b"x = '\xff\xfe\xe9'\n")
    (path,) = store_code_state([str(code)], tmp_path / "run")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=code.parent, capture_output=True, text=True, check=True)
    text = Path(path).read_text(encoding="utf-8")
    assert text.startswith(f"--- git commit ---\n{head.stdout.strip()}\n") and "+x = '" in text
    assert Path(path).name == "checkout.diff" and capsys.readouterr().err == ""
    assert store_code_state([str(code)], tmp_path / "run") == [], "a resumed run keeps what its first start noted"


def test_without_git_a_run_goes_on_with_a_line(tmp_path, monkeypatch, capsys):
    code = repository(tmp_path / "checkout")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert store_code_state([str(code)], tmp_path / "run") == []
    assert capsys.readouterr().err == "The state of the code is not recorded: git is not installed\n"


def test_code_of_no_repository_is_nothing_to_tell(tmp_path, capsys):
    assert store_code_state([str(tmp_path / "code.py")], tmp_path / "run") == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(36, "File name too long", "x" * 500), "File name too long"),
        (PermissionError(13, "Permission denied", "/etc/x"), "cannot write to /etc/x"),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
            "too little memory",
        ),
        (MemoryError(), "too little memory"),
    ],
)
def test_what_the_machine_refuses_is_one_line(capsys, error, words):
    with pytest.raises(SystemExit) as ending, exit_on_user_error("train"):
        raise error
    line = capsys.readouterr().err
    assert ending.value.code == 2 and words in line and line.count("\n") == 1
