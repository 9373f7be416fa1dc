"""A file of JSON lines that a resumed run goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epo_lab.base.files import replace_text, whole_lines


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return all records of a file; none if there is no such file."""
    return [json.loads(line) for line in whole_lines(path)] if path.is_file() else []


class Records:
    """Appends records, each with its iteration, to a file, or keeps them until a file is known."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._waiting: list[dict[str, Any]] = []

    def open(self, path: Path, last_iteration: int | None = None) -> None:
        """Write to ``path`` from now on; lines after ``last_iteration`` are done again by a resumed run and dropped."""
        self._path = path
        if last_iteration is not None and path.exists():
            kept = [line for line in whole_lines(path) if json.loads(line)["iteration"] <= last_iteration]
            replace_text(path, "".join(f"{line}\n" for line in kept))
        for record in self._waiting:
            self.append(record)
        self._waiting = []

    def append(self, record: dict[str, Any]) -> None:
        """Add one record."""
        if self._path is None:
            self._waiting.append(record)
            return
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
