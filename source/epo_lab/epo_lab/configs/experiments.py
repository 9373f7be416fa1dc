"""Experiments: one file of overrides in ``config/experiment`` for every result we claim. What is typed wins over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from epo_lab.base.errors import UserError, did_you_mean

SECTIONS = ("env", "agent")


def experiment_overrides(config_dir: Path, name: str | None) -> list[str]:
    """Return the overrides of an experiment; none if no experiment is named."""
    if name is None:
        return []
    folder = config_dir / "experiment"
    if not folder.is_dir():
        raise UserError(f"unknown experiment '{name}': there is no folder {folder}, which would hold it as {name}.yaml")
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in names:
        hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
        raise UserError(f"unknown experiment '{name}'.{hint}")
    content = yaml.safe_load((folder / f"{name}.yaml").read_text())
    return [token for section in SECTIONS for token in _flatten(section, content.get(section, {}))]


def _flatten(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _flatten(f"{path}.{key}", child)
    else:
        yield f"{path}={'null' if value is None else value}"
