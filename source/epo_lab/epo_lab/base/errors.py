"""Errors a user can mend, and how a command ends when one happens."""

from __future__ import annotations

import difflib
import errno
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .signal_stack import give_signals_a_stack

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_LOST = 1

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


class LostProcessError(RuntimeError):
    """Another process of the run is gone, or does not come; the message names the ranks."""


@contextmanager
def exit_on_user_error(command: str) -> Iterator[None]:
    """End the process with one line instead of a traceback, if the reason is the user's to mend. Scripts begin with it.

    A :class:`UserError` and a full disk end with exit code 2, a Ctrl-C that nobody else took with 130.
    """
    give_signals_a_stack()
    previous, interrupted = signal.getsignal(signal.SIGINT), _note_interrupts()
    try:
        yield
    except UserError as error:
        line = " ".join(str(error).split())
        print(f"{command}: {line}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None
    except LostProcessError as error:
        print(f"{command}: {error}; the last checkpoint is whole (--resume goes on)", file=sys.stderr, flush=True)
        raise SystemExit(EXIT_LOST) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in NEEDED:
            raise
        print(f"{command}: {sys.executable} has no module '{package}': {NEEDED[package]}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None
    except KeyboardInterrupt:
        print(f"\n{command}: stopped at once; what was saved before stays", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except Exception as error:
        if interrupted:
            # an import that a Ctrl-C cut off fails later, and with another error
            print(f"\n{command}: stopped at once; what was saved before stays", file=sys.stderr)
            raise SystemExit(EXIT_INTERRUPTED) from None
        if not _disk_is_full(error):
            raise
        line = "no space left on the disk: free some; checkpoints that were written are whole (--resume goes on)"
        print(f"{command}: {line}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None
    finally:
        if previous is signal.default_int_handler and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, previous)


def _note_interrupts() -> list[int]:
    """Return a list that grows with every Ctrl-C that Python's own handler takes."""
    noted: list[int] = []

    def note(number: int, frame: Any) -> None:
        noted.append(number)
        signal.default_int_handler(number, frame)

    own = threading.current_thread() is threading.main_thread()
    if own and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    return noted


def _disk_is_full(error: BaseException | None) -> bool:
    """Return whether an error, or one that led to it, says that nothing more can be written."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def did_you_mean(word: str, choices: Iterable[str], *, most: int = 3) -> str:
    """Return `` Did you mean a, b?`` with the nearest of the choices, or an empty string if none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=0.5)
    return f" Did you mean {', '.join(by_lower[name] for name in near)}?" if near else ""
