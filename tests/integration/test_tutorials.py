"""The tutorials do what they say: the notebook runs, and the package's files make a task that commands know."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import ROOT

pytestmark = pytest.mark.integration

UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
PACKAGE = re.compile(r"^```(?:python|toml)\n# ([\w./]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_notebook_trains_a_population_and_draws_its_family_tree(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs/tutorials/first_population.ipynb", as_version=4)
    nbformat.validate(notebook)
    # a third of the training: a few generations
    notebook.cells[1].source = notebook.cells[1].source.replace("60", "20")
    settings = {"metadata": {"path": str(tmp_path)}}
    done = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=settings).execute()
    figures = [
        output
        for cell in done.cells
        for output in cell.get("outputs", [])
        if "application/vnd.plotly.v1+json" in output.get("data", {})
    ]
    assert len(figures) == 3
    tree = figures[1]["data"]["application/vnd.plotly.v1+json"]["data"]
    assert sum(len(trace.get("x", [])) for trace in tree if trace.get("mode") != "lines") > 16, "some were born later"


@pytest.fixture
def package(tmp_path):
    """Install the package of the tutorial into a folder of its own."""
    if UV is None:
        pytest.skip("uv installs the package")
    for name, text in PACKAGE.findall((ROOT / "docs/tutorials/own_task.md").read_text()):
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [UV, "pip", "install", "-q", "--python", sys.executable, "--no-deps", "--no-build-isolation"]
    target = tmp_path / "site"
    subprocess.run([*command, "--target", str(target), str(tmp_path / "source")], check=True, timeout=300)
    return {**os.environ, "PYTHONPATH": str(target)}


def test_a_task_of_an_installed_package_is_known_by_its_name(package, tmp_path):
    options = ["--task", "My-Slow-Anymal-v0", "--num_envs", "16", "--max_iterations", "1", "agent.num_steps_per_env=4"]
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts/train.py"), *options],
        cwd=tmp_path,
        env=package,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "My-Slow-Anymal-v0, agent epo" in result.stdout
    assert list(tmp_path.glob("logs/rsl_rl/slow_anymal/*/model_0.pt"))
