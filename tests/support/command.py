"""Run the project's commands as a user does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*args: str, cwd: Path, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, in the environment of the tests."""
    command = [sys.executable, *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def script(name: str, *args: str, cwd: Path, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Run ``scripts/<name>.py``."""
    return run(str(ROOT / "scripts" / f"{name}.py"), *args, cwd=cwd, timeout=timeout)


def isaaclab(*args: str, cwd: Path, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Run Isaac Lab's own command line."""
    return run("-m", "isaaclab", *args, cwd=cwd, timeout=timeout)


def assert_bad_input(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that a command ended with one clear line and exit code 2."""
    last = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else ""
    assert result.returncode == 2, result.stderr[-2000:]
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in last, last
