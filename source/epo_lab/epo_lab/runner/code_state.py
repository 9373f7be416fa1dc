"""Which code made a run: commit and uncommitted changes of the repositories it came from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from epo_lab.base.files import replace_text

FOLDER = "git"


def store_code_state(sources: list[str], folder: Path) -> list[str]:
    """Write a file for every repository, laid out as rsl_rl's, and return their paths.

    A run goes on without it, with a line, if git is missing or fails; files of no repository are nothing to tell.

    Args:
        sources: Files of the repositories.
        folder: The run folder.
    """
    written = []
    for source in sources:
        try:
            root = _git(Path(source).parent, "rev-parse", "--show-toplevel").strip()
            path = folder / FOLDER / f"{Path(root).name}.diff"
            if path.is_file():
                # the first start of a run counts
                continue
            parts = {
                "commit": _git(Path(root), "rev-parse", "HEAD"),
                "status": _git(Path(root), "status"),
                "diff": _git(Path(root), "diff", "HEAD"),
            }
        except (OSError, subprocess.CalledProcessError) as error:
            reason = _reason(error)
            if "not a git repository" not in reason:
                print(f"The state of the code is not recorded: {reason}", file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, "\n\n\n".join(f"--- git {name} ---\n{text.strip()}" for name, text in parts.items()) + "\n")
        written.append(str(path))
    return written


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True)
    # a checkout may hold bytes of any encoding
    return done.stdout.decode(errors="replace")


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, OSError):
        return "git is not installed" if isinstance(error, FileNotFoundError) else str(error)
    return (error.stderr.decode(errors="replace").strip().splitlines() or [f"git ended with {error.returncode}"])[0]
