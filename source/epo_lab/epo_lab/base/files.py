"""Files of a run that survive a kill at any moment."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

SCRATCH = ".partial"
"""How the names of files end that are being written."""


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file so that a reader, a kill or a power cut at any moment finds either the old or the new content.

    Args:
        path: The file.
        write: Writes the content to the path it is given.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}{SCRATCH}")
    try:
        write(scratch)
        sync(scratch)
        os.replace(scratch, path)
        sync(path.parent)
    finally:
        scratch.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    replace_file(path, lambda scratch: scratch.write_text(text, encoding="utf-8"))


def link_file(path: Path, link: Path) -> None:
    """Let ``link`` name the same content as ``path`` from now on, also when ``path`` is deleted."""

    def make(scratch: Path) -> None:
        scratch.unlink(missing_ok=True)
        try:
            os.link(path, scratch)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, scratch)

    replace_file(link, make)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_scratch(folder: Path, older_than: float = 0.0) -> None:
    """Delete what a process that was killed had begun to write.

    Args:
        folder: Where to look, in its folders too.
        older_than: Only what nobody has touched for so long [s]: somebody may be writing the rest. Defaults to 0: all.
    """
    for path in folder.rglob(f".*{SCRATCH}"):
        if older_than == 0.0 or untouched_for(path) > older_than:
            path.unlink(missing_ok=True)


def untouched_for(path: Path) -> float:
    """Return how long ago a file was last written or linked [s]; 0 if it is gone."""
    try:
        return time.time() - path.stat().st_ctime
    except FileNotFoundError:
        return 0.0


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file; a last one without an end was cut off while it was written, and is left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text[: text.rfind("\n") + 1].split("\n")[:-1]
