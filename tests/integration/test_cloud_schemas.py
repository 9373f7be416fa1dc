"""The example files for Kubernetes and SkyPilot, checked by the schemas of both."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.command import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KUBERNETES, SKYPILOT = (ROOT / "docker/cloud" / name for name in ("kubernetes.yaml", "skypilot.yaml"))
UNREACHABLE = ("dns error", "error sending request", "Failed to fetch", "Could not connect")
"""How uv says that there is no registry to fetch the schemas from."""


def check(*paths):
    """Return code and output of the tool, which runs in an environment of its own."""
    uv = Path(sys.executable).with_name("uv")
    command = [
        str(uv),
        "run",
        "--no-project",
        "--python",
        sys.executable,
        "--script",
        str(ROOT / "tools/check_cloud.py"),
    ]
    result = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False, timeout=580)
    if result.returncode and any(sign in result.stderr for sign in UNREACHABLE):
        pytest.skip("no package registry can be reached, and the schemas are not in uv's cache")
    return result.returncode, result.stdout + result.stderr[-2000:]


def test_the_examples_are_valid():
    code, said = check(KUBERNETES, SKYPILOT)
    assert code == 0, said
    assert said.count(": valid (") == 2


@pytest.mark.parametrize(
    ("path", "old", "new", "named"),
    [
        (KUBERNETES, "restartPolicy: OnFailure", "restartPolice: OnFailure", "restartPolice"),
        (KUBERNETES, "backoffLimit: 20", "backoffLimit: often", "backoffLimit"),
        (KUBERNETES, 'value: "4"', "value: 4", "env.0.value"),
        (SKYPILOT, "use_spot: true", "use_spots: true", "use_spots"),
        (SKYPILOT, "mode: MOUNT", "mode: MOUNTED", "MOUNTED"),
        (SKYPILOT, "setup: |", "set_up: |", "set_up"),
    ],
)
def test_a_mistake_is_found_and_named(path, old, new, named, tmp_path):
    text = path.read_text()
    assert text.count(old) == 1
    wrong = tmp_path / path.name
    wrong.write_text(text.replace(old, new))
    code, said = check(wrong)
    assert code == 1 and named in said, said
