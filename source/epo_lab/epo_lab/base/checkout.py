"""Whether this is a checkout or an installed package, which decides how commands are typed."""

from __future__ import annotations

from pathlib import Path


def checkout() -> Path | None:
    """Return the folder of the checkout that this package is in; None if it was installed as a wheel."""
    parents = Path(__file__).resolve().parents
    return parents[4] if len(parents) > 4 and (parents[4] / "isaaclab.sh").is_file() else None


def typed(command: str) -> str:
    """Return how a command such as ``train`` is typed where the user is."""
    root = checkout()
    if root is None:
        return f"epo-lab {command}"
    if Path.cwd() == root:
        return f"./isaaclab.sh -p scripts/{command}.py"
    return f"{root}/isaaclab.sh -p {root}/scripts/{command}.py"
