"""The launcher, in a copy of the project with fake tools: nothing is downloaded and every call is written down."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]

FAKE_PYTHON = """\
#!/bin/bash
# a Python 3.12 that can make an environment and report how it was called
case "$1 $2" in
  "-c import sys; sys.exit"*) exit 0 ;;
  "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; touch "$3/pyvenv.cfg"; echo "venv $0" >>"$CALLS" ;;
  "-m pip") echo "pip $*" >>"$CALLS"; cp "$FAKE_UV" "$(dirname "$0")/uv" ;;
  *) printf 'ran'; printf ' [%s]' "$@"; echo; exit "${FAKE_EXIT:-0}" ;;
esac
"""

FAKE_UV = """\
#!/bin/bash
echo "uv $*" >>"$CALLS"
if [ "$1" = venv ]; then
  dir="${@: -1}"; mkdir -p "$dir/bin"; cp "$FAKE_PYTHON" "$dir/bin/python"; touch "$dir/pyvenv.cfg"; exit
fi
[ -n "$UV_SLOW" ] && sleep "$UV_SLOW"
[ -n "$UV_FAIL" ] && [ -e "$UV_FAIL" ] && { rm "$UV_FAIL"; exit 1; }
python=$(printf '%s\\n' "$@" | grep '/bin/python$')
mkdir -p "${python%/bin/python}/lib/python3.12/site-packages/isaaclab"
"""

BROKEN = "#!/bin/bash\nexit 127\n"


class Project:
    """A copy of the project in a folder with spaces in its name."""

    def __init__(self, folder: Path):
        self.root = folder / "my project"
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.calls_file = folder / "calls"
        for path in (self.root, self.bin, self.home, folder / "tools"):
            path.mkdir(parents=True)
        self.calls_file.touch()
        shutil.copy(ROOT / "isaaclab.sh", self.root)
        shutil.copytree(ROOT / "requirements", self.root / "requirements")
        for package in ("epo_lab", "epo_tasks"):
            (self.root / "source" / package).mkdir(parents=True)
            shutil.copy(ROOT / "source" / package / "pyproject.toml", self.root / "source" / package)
        self.python = self.script(folder / "tools" / "python", FAKE_PYTHON)
        self.uv = self.script(folder / "tools" / "uv", FAKE_UV)
        # the machine's own Pythons must not be found
        self.script(self.bin / "python3.12", BROKEN)
        self.script(self.bin / "python3", BROKEN)

    def script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def provide(self, path: Path, tool: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tool, path)
        return path

    def env(self, **extra: str) -> dict[str, str]:
        path = f"{self.bin}:/usr/bin:/bin"
        known = {"FAKE_PYTHON": str(self.python), "FAKE_UV": str(self.uv), "CALLS": str(self.calls_file)}
        return {"PATH": path, "HOME": str(self.home), "UV_SLOW": "", "UV_FAIL": ""} | known | extra

    def start(self, *args: str, **extra: str) -> subprocess.Popen:
        command = [str(self.root / "isaaclab.sh"), *args]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(command, env=self.env(**extra), text=True, cwd=self.home, **pipes)

    def run(self, *args: str, **extra: str) -> subprocess.CompletedProcess:
        process = self.start(*args, **extra)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines()

    def installs(self) -> list[str]:
        return [call for call in self.calls if "pip install" in call and "-r " in call]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def ready(project):
    """A project whose environment has been made with uv."""
    project.provide(project.bin / "uv", project.uv)
    project.provide(project.home / ".pyenv/versions/3.12.4/bin/python3.12", project.python)
    assert project.run("-i").returncode == 0
    return project


def test_help_and_wrong_options(project):
    assert project.run("-h").returncode == 0
    assert "usage:" in project.run("-h").stdout
    assert project.run().returncode == 2
    wrong = project.run("-x")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "unknown option '-x'" in wrong.stderr
    assert not (project.root / ".venv").exists()


def test_unknown_extra_is_refused_before_anything_is_made(project):
    result = project.run("-i", "dev,nonsense")
    assert result.returncode == 2
    assert "unknown extra 'nonsense'; there are: dev viewer video envpool docs isaacsim" in result.stderr
    assert not project.calls


def test_python_is_found_behind_a_broken_shim_in_pyenvs_newest_version(project):
    for version in ("3.12.9", "3.12.10", "3.11.7"):
        project.provide(project.home / f".pyenv/versions/{version}/bin/python3.12", project.python)
    assert project.run("-i").returncode == 0
    assert project.calls[0] == f"venv {project.home}/.pyenv/versions/3.12.10/bin/python3.12"


def test_named_python_wins_and_must_work(project):
    project.provide(project.home / ".pyenv/versions/3.12.4/bin/python3.12", project.python)
    mine = project.provide(project.home / "mine/python", project.python)
    broken = project.script(project.home / "broken/python", BROKEN)
    result = project.run("-i", EPO_PYTHON=str(broken))
    assert result.returncode == 2 and "is not a working Python 3.12" in result.stderr
    assert project.run("-i", EPO_PYTHON=str(mine)).returncode == 0
    assert project.calls[0] == f"venv {mine}"


def test_without_python_uv_downloads_one(project):
    project.provide(project.bin / "uv", project.uv)
    assert project.run("-i").returncode == 0
    assert project.calls[0].startswith("uv venv -q --python 3.12 ")


def test_without_python_and_uv_one_line_says_what_to_install(project):
    result = project.run("-i")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("isaaclab.sh: no Python 3.12 found: install one")


def test_missing_uv_is_installed_into_the_new_environment(project):
    project.provide(project.home / ".pyenv/versions/3.12.4/bin/python3.12", project.python)
    assert project.run("-i").returncode == 0
    assert (project.root / ".venv/bin/uv").exists()
    assert "pip install -q uv==" in project.calls[1]


def test_second_start_installs_nothing_and_costs_little(ready):
    before = ready.calls
    begin = time.monotonic()
    result = ready.run("-p", "script.py", "a b", "--c")
    assert time.monotonic() - begin < 0.3
    assert result.stdout == "ran [script.py] [a b] [--c]\n"
    assert ready.calls == before


def test_exit_code_and_isaac_labs_words_pass_through(ready):
    assert ready.run("-p", "script.py", FAKE_EXIT="7").returncode == 7
    assert ready.run("zero_agent", "--task", "x").stdout == "ran [-m] [isaaclab] [zero_agent] [--task] [x]\n"


def test_the_list_of_tasks_says_what_scripts_take_besides(ready):
    result = ready.run("list_envs", "--all")
    assert result.stdout == "ran [-m] [isaaclab] [list_envs] [--all]\n"
    assert "EnvPool/" in result.stderr
    assert ready.run("list_envs", FAKE_EXIT="7").returncode == 7


def test_tests_bring_their_tools_along(ready):
    assert "ran [-m] [pytest] [-k] [x]" in ready.run("-t", "-k", "x").stdout
    for extra in ("dev.txt", "envpool.txt"):
        assert any(extra in call for call in ready.installs())


def test_dev_brings_envpool_along(ready):
    ready.run("-i", "dev")
    assert any("envpool.txt" in call for call in ready.installs())


def test_changed_pins_are_installed_again_with_the_extras_that_are_there(ready):
    ready.run("-i", "video")
    with (ready.root / "requirements/base.txt").open("a") as file:
        file.write("six==1.17.0\n")
    before = len(ready.installs())
    assert ready.run("-p", "x").returncode == 0
    again = ready.installs()[before:]
    assert ["base.txt" in again[0], "video.txt" in again[1], len(again)] == [True, True, 2]


def test_moved_checkout_is_repaired(ready):
    moved = ready.root.with_name("moved here")
    ready.root.rename(moved)
    ready.root = moved
    assert ready.run("-p", "x").returncode == 0
    assert f"-e {moved}/source/epo_lab" in ready.calls[-1]


def test_interrupted_installation_is_finished_by_the_next_start(project, tmp_path):
    project.provide(project.bin / "uv", project.uv)
    fail_once = tmp_path / "fail"
    fail_once.touch()
    assert project.run("-i", UV_FAIL=str(fail_once)).returncode != 0
    assert project.run("-p", "x").stdout == "ran [x]\n"
    assert len([call for call in project.installs() if "base.txt" in call]) == 2


def test_broken_environment_is_made_anew(ready):
    ready.script(ready.root / ".venv/bin/python", BROKEN)
    shutil.rmtree(ready.root / ".venv/lib")
    result = ready.run("-p", "x")
    assert result.stdout == "ran [x]\n"
    assert "does not run; making it anew" in result.stderr


@pytest.mark.parametrize("looks_like", [(), ("pyvenv.cfg",), ("epo-lab/base",)])
def test_a_folder_that_is_no_environment_is_left_alone(project, looks_like):
    for name in ("precious", *looks_like):
        (project.root / ".venv" / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / ".venv" / name).touch()
    result = project.run("-i")
    assert result.returncode == 2 and "is in the way" in result.stderr
    assert (project.root / ".venv" / "precious").exists()


@pytest.mark.parametrize("place", ["parent", "checkout"])
def test_a_folder_around_the_checkout_is_never_its_environment(project, place):
    folder = project.root.parent if place == "parent" else project.root
    (folder / "pyvenv.cfg").touch()
    (folder / "epo-lab").mkdir(exist_ok=True)
    (folder / "epo-lab" / "made-here").touch()
    result = project.run("-i", EPO_VENV=str(folder))
    assert result.returncode == 2 and "holds this checkout" in result.stderr
    assert (project.root / "isaaclab.sh").exists() and (folder / "pyvenv.cfg").exists()


def test_two_starts_at_once_install_once(project):
    project.provide(project.bin / "uv", project.uv)
    first, second = (project.start("-p", "x", UV_SLOW="1") for _ in range(2))
    outputs = [process.communicate(timeout=60) for process in (first, second)]
    assert [out for out, _ in outputs] == ["ran [x]\n"] * 2
    assert len([call for call in project.installs() if "base.txt" in call]) == 1
    assert sum("waiting for another start" in err for _, err in outputs) == 1


def test_unwritable_place_is_said_in_one_line(project):
    result = project.run("-i", EPO_VENV="/dev/null/venv")
    assert result.returncode == 2
    assert result.stderr.startswith("isaaclab.sh: cannot write beside /dev/null/venv")


def make_foreign(project: Project, prefix: Path) -> Path:
    project.provide(prefix / "bin/python", project.python)
    (prefix / "lib/python3.12/site-packages/isaaclab-3.0.0.dist-info").mkdir(parents=True)
    project.provide(prefix / "bin/uv", project.uv)
    return prefix


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_active_environment_with_isaac_lab_is_used(project, variable):
    prefix = make_foreign(project, project.home / "active env")
    assert project.run("-p", "x", **{variable: str(prefix)}).stdout == "ran [x]\n"
    assert not (project.root / ".venv").exists()
    assert len(project.calls) == 1 and "--no-deps -e" in project.calls[0], "only our two packages are added"
    project.run("-p", "x", **{variable: str(prefix)})
    assert len(project.calls) == 1


@pytest.mark.parametrize("where", ["", ".venv", "env_isaaclab"])
def test_isaaclab_path_is_used(project, where):
    checkout = project.home / "IsaacLab"
    make_foreign(project, checkout / where)
    assert project.run("-p", "x", ISAACLAB_PATH=str(checkout)).stdout == "ran [x]\n"
    assert not (project.root / ".venv").exists()


def test_other_active_environments_are_ignored(ready):
    other = ready.home / "other"
    ready.script(other / "bin/python", BROKEN)
    assert ready.run("-p", "x", VIRTUAL_ENV=str(other)).stdout == "ran [x]\n"
    warned = ready.run("-p", "x", ISAACLAB_PATH=str(other))
    assert warned.stdout == "ran [x]\n" and "holds no environment with Isaac Lab 3.0" in warned.stderr


def test_isaac_sim_comes_from_nvidias_index(ready):
    assert ready.run("-i", "isaacsim").returncode == 0
    call = ready.installs()[-1]
    assert "isaacsim.txt" in call and "pypi.nvidia.com" in call and "unsafe-best-match" in call


def test_shell_scripts_are_clean():
    shellcheck = Path(sys.executable).parent / "shellcheck"
    scripts = [ROOT / "isaaclab.sh", ROOT / "requirements/lock.sh", ROOT / ".ci/run"]
    result = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
