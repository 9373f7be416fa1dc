"""What a fresh clone must be able to rely on."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PACKAGES = ("epo_lab", "epo_tasks")


def test_importing_epo_lab_is_fast_and_light():
    code = (
        "import sys, time; begin = time.perf_counter(); import epo_lab; took = time.perf_counter() - begin;"
        "print(took, [name for name in ('torch', 'isaaclab', 'rsl_rl', 'hydra') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, modules = out.split(maxsplit=1)
    assert float(seconds) < 0.2
    assert modules.strip() == "[]"


@pytest.mark.parametrize("package", PACKAGES)
def test_package_and_extension_agree(package):
    folder = ROOT / "source" / package
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    extension = tomllib.loads((folder / "config" / "extension.toml").read_text())
    assert project["version"] == extension["package"]["version"]
    assert extension["python"]["module"][0]["name"] == package
    assert (folder / package / "py.typed").exists()
    assert project["version"] in (folder / "docs" / "CHANGELOG.rst").read_text()


def test_tasks_are_announced_to_isaac_lab():
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert root["project"]["entry-points"]["isaaclab.tasks"] == {"epo_tasks": "epo_tasks"}
    assert "epo_tasks" in [entry.value for entry in entry_points(group="isaaclab.tasks")]


def test_requirements_are_pinned_and_name_no_address():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "://" not in text, path
        for line in text.splitlines():
            requirement = line.partition("#")[0].partition(";")[0].strip()
            pinned = re.fullmatch(r"[\w.\[\],-]+==\S+", requirement)
            assert not requirement or pinned or path.stem == "isaacsim", line


def test_ci_runs_the_readmes_test_command():
    readme = (ROOT / "README.md").read_text()
    command = "./isaaclab.sh -t"
    assert command in (ROOT / ".ci" / "run").read_text()
    assert re.search(rf"^{re.escape(command)}$", readme, re.MULTILINE)


MODULES = {
    "rsl_rl": "rsl-rl-lib",
    "yaml": "pyyaml",
    "PIL": "pillow",
    "hydra": "hydra-core",
    "imageio_ffmpeg": "imageio-ffmpeg",
    "pxr": "usd-exchange",
    "warp": "warp-lang",
}
"""Distributions that are not named like their module; Isaac Lab's packages are one distribution."""


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_that_is_imported_is_declared(package):
    project = tomllib.loads((ROOT / "source" / package / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(text for group in project["optional-dependencies"].values() for text in group)]
    declared = {re.split(r"[<>=!\[ ]", text)[0] for text in texts}
    for path in (ROOT / "source" / package / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in (full.partition(".")[0] for full in names):
                if name in sys.stdlib_module_names or name == package:
                    continue
                wanted = "isaaclab" if name.startswith("isaaclab") else MODULES.get(name, name)
                assert wanted in declared, f"{path.name} imports {name}, {package} does not declare {wanted}"
    assert project["requires-python"] == ">=3.12"


def test_rsl_rl_is_bound_to_its_major_version():
    project = tomllib.loads((ROOT / "source/epo_lab/pyproject.toml").read_text())["project"]
    assert "rsl-rl-lib>=5.5,<6" in project["dependencies"]
