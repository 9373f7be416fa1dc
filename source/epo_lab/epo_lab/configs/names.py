"""Names of tasks and agents, known without torch or Isaac Lab: a misspelt one is answered at once.

``tasks.tsv`` is a copy of what is registered, written by ``tools/task_table.py`` and checked by a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

AGENTS_DIR = Path(__file__).parent / "agents"
TABLE = Path(__file__).parent / "tasks.tsv"
DIAGNOSTICS = "Epo-Diag-"
"""What the names of our small problems begin with."""
ENVPOOL = "EnvPool/"
"""What EnvPool's tasks begin with; there are hundreds, and EnvPool knows them."""
ISAACLAB = "3.0.0"
"""Isaac Lab whose tasks the table holds."""
NONE = "-"


@dataclass(frozen=True)
class TaskRow:
    """What the table says of a task."""

    name: str
    default: str
    """Agent that is taken if none is named; ``-`` if the task has no rsl_rl agent."""
    metric: str
    """Log tag of the score; ``-`` if the task does not say: the success rate if it is logged, else the return."""
    sizes: str
    """Number of environments of sizes cpu, gpu and paper."""
    more: tuple[str, ...]
    """Agents beyond the presets; ``*_mlp`` stands for every preset with this suffix."""

    @property
    def agents(self) -> list[str]:
        """Names of all its agents."""
        if self.default == NONE:
            return []
        presets = agent_names()
        suffixes = [name[1:] for name in self.more if name.startswith("*")]
        own = [name for name in self.more if not name.startswith("*")]
        return [*presets, *(name + suffix for suffix in suffixes for name in presets), *own]


@cache
def agent_names() -> list[str]:
    """Return the names of all presets."""
    return sorted(path.stem for path in AGENTS_DIR.glob("*.yaml"))


@cache
def task_table() -> dict[str, TaskRow]:
    """Return the tasks that come with epo-lab and with Isaac Lab."""
    rows = {}
    for line in TABLE.read_text().splitlines()[1:]:
        name, default, metric, sizes, more = line.split("\t")
        rows[name] = TaskRow(name, default, metric, sizes, () if more == NONE else tuple(more.split(",")))
    return rows


def table_is_complete() -> bool:
    """Return whether nothing else can be registered: no other Isaac Lab, and no task package of somebody else."""
    from importlib.metadata import PackageNotFoundError, entry_points, version

    try:
        if version("isaaclab") != ISAACLAB:
            return False
    except PackageNotFoundError:
        return False
    return {entry.value for entry in entry_points(group="isaaclab.tasks")} <= {"epo_tasks"}
