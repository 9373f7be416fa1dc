"""Text files of a run that survive a kill at any moment."""

from __future__ import annotations

import os
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader, or a kill at any moment, finds either the old or the new content."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(text)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file; a last one without an end was cut off while it was written, and is left out."""
    text = path.read_text()
    return text[: text.rfind("\n") + 1].splitlines()
