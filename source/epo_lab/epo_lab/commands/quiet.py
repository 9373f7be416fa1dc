"""Keep the terminal readable while Isaac Lab starts: its many lines go to a file."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epo_lab.base.errors import UserError
from epo_lab.base.lazy import uncollected
from epo_lab.configs.names import DIAGNOSTICS, ENVPOOL


def loading(task: str | None) -> str:
    """Return what goes on while a task is loaded, and how long it usually takes if that is more than a moment."""
    light = task is not None and task.startswith((DIAGNOSTICS, ENVPOOL))
    return "Loading the task" if light else "Loading Isaac Lab and the task (usually 10 to 20 s)"


@contextmanager
def quiet(message: str, *, verbose: bool) -> Iterator[list[str]]:
    """Show only ``message`` and how long the body took; what the body prints is in the list that is handed out.

    Native libraries write past Python's streams, so the file descriptors themselves are turned aside. If the body
    fails for another reason than the user's input, everything it printed is shown.

    Args:
        message: What goes on meanwhile.
        verbose: Whether to leave everything visible instead.
    """
    said: list[str] = []
    if verbose:
        print(message, flush=True)
        yield said
        return
    handle, name = tempfile.mkstemp(prefix="epo-lab-", suffix=".log")
    os.close(handle)
    log = Path(name)
    begin = time.monotonic()
    print(f"{message} ...", end="", flush=True)
    ending, show = "failed", True
    try:
        with into_file(log), uncollected():
            yield said
        ending, show = f"{time.monotonic() - begin:.0f} s", False
    except UserError:
        show = False
        raise
    except KeyboardInterrupt:
        ending, show = "stopped", False
        raise
    finally:
        print(f" {ending}", flush=True)
        said.append(log.read_text(errors="replace"))
        log.unlink()
        if show:
            sys.stderr.write(said[0])


@contextmanager
def into_file(path: Path) -> Iterator[None]:
    """Append everything that the body prints to a file, also what native libraries print past Python's streams."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, original in zip((1, 2), saved, strict=True):
            os.dup2(original, descriptor)
            os.close(original)
