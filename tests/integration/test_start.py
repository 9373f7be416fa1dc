"""What a diagnostic loads before its first iteration ends, and what it must not."""

import json
import os
import subprocess
import sys

import pytest

from epo_lab.base.lazy import is_loaded, postpone

pytestmark = pytest.mark.integration

NOT_NEEDED = ("wandb", "git", "pydantic", "hydra", "plotly", "scipy", "pandas", "matplotlib.pyplot", "isaaclab", "onnx")

CODE = """
import gc, json, sys
looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase))
from epo_lab.base.lazy import is_loaded
from epo_lab.cli.train import main
from epo_lab.runner.console import Console

def first_line(self, *args, **kwargs):
    print("LOADED", json.dumps([name for name in list(sys.modules) if is_loaded(name)]), flush=True)
    print("GARBAGE", looks.count("start"), gc.get_freeze_count(), gc.isenabled(), flush=True)

Console.update = first_line
sys.exit(main(sys.argv[1:]))
"""


def test_a_diagnostic_loads_nothing_it_does_not_need_and_looks_for_no_garbage_meanwhile(tmp_path):
    words = ["--task", "Epo-Diag-Deceptive-v0", "--num_envs", "32", "--max_iterations", "1"]
    command = [sys.executable, "-c", CODE, *words]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("LOADED")]
    loaded = set(json.loads(line.removeprefix("LOADED")))
    assert {"torch", "rsl_rl.runners", "epo_lab.runner.runner"} <= loaded, "the list is one of a run"
    assert not loaded.intersection(NOT_NEEDED)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("GARBAGE")]
    looks, frozen, enabled = line.split()[1:]
    assert int(looks) < 100 and int(frozen) > 100_000 and enabled == "True", line


def test_algorithms_and_runner_need_torch_and_rsl_rl_only():
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in BLOCKED: raise ModuleNotFoundError(name, name=name)\n"
        "BLOCKED = {'yaml', 'gymnasium', 'hydra', 'matplotlib', 'plotly', 'PIL', 'isaaclab', 'wandb'}\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import epo_lab, epo_lab.runner.runner\n"
        "from epo_lab.algorithms import EPO, PBT, SAC, ESAC\n"
        "print('fine')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "fine", result.stderr[-1000:]


def test_rsl_rl_can_be_imported_without_git(tmp_path):
    code = "import epo_lab, rsl_rl.utils.logger"
    environment = {name: value for name, value in os.environ.items() if name != "GIT_PYTHON_REFRESH"}
    result = subprocess.run([sys.executable, "-c", code], env=environment | {"PATH": str(tmp_path)}, check=False)
    assert result.returncode == 0


def test_a_postponed_package_is_there_when_it_is_used(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_package.py").write_text("VALUE = 3\n")
    postpone("slow_package", "no_such_package")
    import slow_package  # type: ignore[import-not-found]

    assert not is_loaded("slow_package") and "no_such_package" not in sys.modules
    assert slow_package.VALUE == 3 and is_loaded("slow_package")
    monkeypatch.delitem(sys.modules, "slow_package")
