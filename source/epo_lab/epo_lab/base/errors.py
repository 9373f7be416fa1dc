"""Errors a user can mend, and how a command ends when one happens."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .signal_stack import give_signals_a_stack

EXIT_BAD_INPUT = 2

_LAUNCHER = "start with ./isaaclab.sh, or install epo_lab with what it depends on"
_ISAAC = "tasks with robots need Isaac Lab 3.0; './isaaclab.sh -i' or 'pip install isaaclab' adds it"
NEEDED = {
    **dict.fromkeys(("torch", "tensordict", "rsl_rl", "numpy", "gymnasium", "yaml", "hydra"), _LAUNCHER),
    **dict.fromkeys(("matplotlib", "plotly", "PIL", "tensorboard"), _LAUNCHER),
    **dict.fromkeys(("isaaclab", "isaaclab_tasks", "isaaclab_rl"), _ISAAC),
    "epo_tasks": "the tasks Epo-* with robots are in the package epo_tasks: 'pip install epo_tasks'",
}
"""Packages whose absence is no bug, and what to do about it."""


class UserError(Exception):
    """Something is wrong with the input; the message says in one line what, and what to do."""


class NonFiniteUpdateError(RuntimeError):
    """Too many gradient steps in a row were not finite."""


@contextmanager
def exit_on_user_error(command: str) -> Iterator[None]:
    """End the process with one line and exit code 2 if the body raises a :class:`UserError`. Scripts begin with it."""
    give_signals_a_stack()
    try:
        yield
    except UserError as error:
        line = " ".join(str(error).split())
        print(f"{command}: {line}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in NEEDED:
            raise
        print(f"{command}: {sys.executable} has no module '{package}': {NEEDED[package]}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None


def did_you_mean(word: str, choices: Iterable[str], *, most: int = 3) -> str:
    """Return `` Did you mean a, b?`` with the nearest of the choices, or an empty string if none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=0.5)
    return f" Did you mean {', '.join(by_lower[name] for name in near)}?" if near else ""
