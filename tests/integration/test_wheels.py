"""Both packages as wheels in an environment that has nothing else of ours: no checkout, no launcher."""

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from support.command import ROOT

pytestmark = pytest.mark.integration

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Build both wheels."""
    if UV is None:
        pytest.skip("uv builds the wheels")
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("epo_lab", "epo_tasks"):
        command = [UV, "build", "-q", "--wheel", "--out-dir", str(folder), str(ROOT / "source" / name)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return {path.name.split("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def environment(wheels, tmp_path_factory):
    """Make an environment with the two wheels, in which a path file leads to the large packages."""
    folder = tmp_path_factory.mktemp("somewhere") / "env"
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, str(folder)], check=True, timeout=300)
    install = [UV, "pip", "install", "-q", "--offline", "--no-deps", "--python", str(folder / "bin/python")]
    subprocess.run([*install, *map(str, wheels.values())], check=True, timeout=300)
    site = next(folder.glob("lib/python*/site-packages"))
    # path files of that folder, such as those of our own checkout, are not followed
    (site / "large_packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder


def epo_lab(environment, *words, cwd):
    command = [str(environment / "bin/epo-lab"), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_wheels_hold_the_files_that_are_no_code(wheels):
    lab, tasks = (zipfile.ZipFile(wheels[name]).namelist() for name in ("epo_lab", "epo_tasks"))
    for name in ("configs/agents/epo.yaml", "configs/tasks.tsv", "evaluation/published.yaml", "py.typed"):
        assert f"epo_lab/{name}" in lab
    assert "epo_lab/pretrained/Epo-Anymal-Flat-v0.pt" in lab
    assert "epo_tasks/robots/facts/anymal_c.json" in tasks
    assert not [name for name in lab if name.startswith(("tests", "tools", "scripts"))]


def test_commands_work_without_a_checkout(environment, tmp_path):
    where = [str(environment / "bin/python"), "-c", "import epo_lab; print(epo_lab.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(environment)), found

    small = ("--num_envs", "32", "--max_iterations", "2", "agent.algorithm.num_agents=8")
    result = epo_lab(environment, "train", "--task", "Epo-Diag-Deceptive-v0", *small, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "Done. Look at it: epo-lab play --task Epo-Diag-Deceptive-v0" in result.stdout
    run = next(tmp_path.glob("logs/rsl_rl/diag_deceptive/*"))
    assert json.loads((run / "run.json").read_text())["task"] == "Epo-Diag-Deceptive-v0"
    assert epo_lab(environment, "report", str(run), cwd=tmp_path).returncode == 0
    assert (run / "report.html").is_file()


def test_what_needs_a_checkout_is_said_in_one_line(environment, tmp_path):
    result = epo_lab(environment, "list", cwd=tmp_path)
    assert result.returncode == 0 and "Epo-Anymal-Flat-v0" in result.stdout
    result = epo_lab(environment, "train", "--task", "Epo-Anymal-Falt-v0", cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "Did you mean Epo-Anymal-Flat-v0" in result.stderr
    result = epo_lab(environment, "train", "--help", cwd=tmp_path)
    assert "epo-lab train --task Epo-Anymal-Flat-v0" in result.stdout and "isaaclab.sh -p" not in result.stdout


@pytest.mark.slow
def test_isaac_lab_finds_the_tasks_of_the_wheel(environment, tmp_path):
    command = [str(environment / "bin/python"), "-m", "isaaclab", "list_envs"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert "Epo-Anymal-Flat-v0" in result.stdout, result.stderr[-2000:]
    options = ("--experiment", "kuka_onearm_first_goals")
    result = epo_lab(environment, "train", "--task", "Epo-Kuka-OneArm-Regrasp-v0", *options, cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no folder" in result.stderr.splitlines()[-1]
