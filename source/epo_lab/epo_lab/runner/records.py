"""A file of JSON lines that a resumed run goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epo_lab.base.files import replace_text, whole_lines

SUFFIX = ".jsonl"


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return all records of a file; none if there is no such file."""
    return [json.loads(line) for line in whole_lines(path)] if path.is_file() else []


class RecordFiles:
    """Files of a run folder, one for each kind of record; ``lineage`` goes to ``lineage.jsonl``."""

    def __init__(self, folder: Path) -> None:
        """Take the run folder."""
        self._folder = folder

    def drop_after(self, iteration: int) -> None:
        """Forget records of iterations that a resumed run does again."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            kept = [line for line in whole_lines(path) if json.loads(line)["iteration"] <= iteration]
            replace_text(path, "".join(f"{line}\n" for line in kept))

    def append(self, records: dict[str, list[dict[str, Any]]]) -> None:
        """Add records, by kind."""
        for kind, lines in records.items():
            if lines:
                with (self._folder / f"{kind}{SUFFIX}").open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
