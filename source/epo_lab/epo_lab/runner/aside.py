"""What a resumed run cannot use is kept in a folder of the run, ``aside/``, and said in a line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

FOLDER = "aside"


def set_lines_aside(path: Path, lines: Sequence[str]) -> None:
    """Keep damaged lines of a file of the run; the caller writes the file without them."""
    if lines:
        with _place(path).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        print(f"{path.name}: {count(lines)} set aside in {path.parent / FOLDER}")


def set_files_aside(paths: Sequence[Path], why: str) -> None:
    """Move files of the run out of the way.

    Args:
        paths: The files, of one folder.
        why: What is the matter with them.
    """
    for path in paths:
        os.replace(path, _place(path))
    if paths:
        names = paths[0].name if len(paths) == 1 else f"{paths[0].name} to {paths[-1].name}"
        print(f"{names} {why}: set aside in {paths[0].parent / FOLDER}")


def count(lines: Sequence[str]) -> str:
    """Return how many lines are damaged, in words."""
    return f"{len(lines)} damaged line{'' if len(lines) == 1 else 's'}"


def _place(path: Path) -> Path:
    folder = path.parent / FOLDER
    folder.mkdir(exist_ok=True)
    return folder / path.name
