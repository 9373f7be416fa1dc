"""Keep the terminal readable while Isaac Lab starts: its many lines go to a file."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epo_lab.errors import UserError


class SetupLog:
    """What was printed during a quiet start."""

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="epo-lab-setup-", suffix=".log")
        os.close(handle)
        self.path = Path(name)

    def move_to(self, folder: Path) -> None:
        """Keep it in the run folder."""
        if self.path.exists():
            shutil.copyfile(self.path, folder / "setup.log")

    def discard(self) -> None:
        """Delete the temporary file."""
        self.path.unlink(missing_ok=True)


@contextmanager
def quiet(message: str, *, verbose: bool) -> Iterator[SetupLog]:
    """Show only ``message`` and how long the body took; what the body prints is kept in the log that is handed out.

    Native libraries write past Python's streams, so the file descriptors themselves are turned aside. If the body
    fails for another reason than the user's input, everything it printed is shown.

    Args:
        message: What goes on meanwhile.
        verbose: Whether to leave everything visible instead.
    """
    log = SetupLog()
    if verbose:
        yield log
        return
    begin = time.monotonic()
    print(f"{message} ...", end="", flush=True)
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with log.path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    failed = bad_input = False
    try:
        yield log
    except UserError:
        bad_input = True
        raise
    except BaseException:
        failed = True
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, original in zip((1, 2), saved, strict=True):
            os.dup2(original, descriptor)
            os.close(original)
        print(" failed" if failed or bad_input else f" {time.monotonic() - begin:.0f} s", flush=True)
        if failed:
            sys.stderr.write(log.path.read_text(errors="replace"))
