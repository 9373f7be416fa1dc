"""A file of JSON lines that a resumed run goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epo_lab.base.files import replace_text, sync, whole_lines

from .aside import set_lines_aside
from .folder import CENSUS, LINEAGE

SUFFIX = ".jsonl"


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return all records of a file; none if there is no such file. Damaged lines are left out."""
    return [record for _, record in _parse(path) if record is not None]


def damaged_records(path: Path) -> list[str]:
    """Return the lines of a file that are no records."""
    return [line for line, record in _parse(path) if record is None]


class RecordFiles:
    """Files of a run folder, one for each kind of record; ``lineage`` goes to ``lineage.jsonl``."""

    def __init__(self, folder: Path) -> None:
        """Take the run folder."""
        self._folder = folder

    def drop_after(self, iteration: int) -> None:
        """Forget records of iterations that a resumed run does again, and set damaged lines aside."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            set_lines_aside(path, damaged_records(path))
            kept = [line for line, record in _parse(path) if record is not None and record["iteration"] <= iteration]
            replace_text(path, "".join(f"{line}\n" for line in kept))

    def append(self, records: dict[str, list[dict[str, Any]]]) -> None:
        """Add records, by kind."""
        for kind, lines in records.items():
            if lines:
                with (self._folder / f"{kind}{SUFFIX}").open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)

    def sync(self) -> None:
        """Wait until all records are on the disk."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            sync(path)


def _parse(path: Path) -> list[tuple[str, dict[str, Any] | None]]:
    """Return every line with its record; None if it is none."""
    lines = whole_lines(path) if path.is_file() else []
    return [(line, _record(line, path.name)) for line in lines]


def _record(line: str, file: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        whole = _IS_WHOLE.get(file, _is_dated)(record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record if whole else None


def _is_dated(record: Any) -> bool:
    return isinstance(record["iteration"], int)


def _is_generation(record: Any) -> bool:
    """Return whether a line of the lineage holds what the family tree is made of."""
    slots = range(len(record["fitness"]))
    children = [(child["slot"], child["id"], *child["parent_ids"]) for child in record["children"]]
    numbers = all(isinstance(number, int) for child in children for number in child)
    return _is_dated(record) and _are_numbers(record["fitness"]) and numbers and all(c[0] in slots for c in children)


def _is_census(record: Any) -> bool:
    """Return whether every list of a census has an entry for each agent."""
    lists = [value for value in record.values() if isinstance(value, list)]
    return _is_dated(record) and _are_numbers(record["fitness"]) and len({len(values) for values in lists}) == 1


def _are_numbers(values: list[Any]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


_IS_WHOLE = {LINEAGE: _is_generation, CENSUS: _is_census}
