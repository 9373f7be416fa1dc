"""Run the project's commands as a user does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
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


def wait_for_end(processes: Iterable[int], seconds: float = 60.0) -> None:
    """Wait until processes are gone; one that ended and whose parent does not look (a zombie) is."""
    end = time.monotonic() + seconds
    for process in processes:
        status = Path(f"/proc/{process}/stat")
        while status.exists() and status.read_text().rpartition(") ")[2][0] != "Z":
            assert time.monotonic() < end, f"process {process} goes on"
            time.sleep(0.05)


def children(process: int) -> list[int]:
    """Return the processes that a process has started, by their numbers."""
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def assert_bad_input(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that a command ended with one clear line and exit code 2."""
    last = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else ""
    assert result.returncode == 2, result.stderr[-2000:]
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in last, last
