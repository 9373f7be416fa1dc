"""Errors a user can mend, and how a command ends when one happens."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .signal_stack import give_signals_a_stack

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

_LAUNCHER = "start with ./isaaclab.sh, or install epo_lab with what it depends on"
_ISAAC = "tasks with robots need Isaac Lab 3.0; './isaaclab.sh -i' or 'pip install isaaclab' adds it"
NEEDED = {
    **dict.fromkeys(("torch", "tensordict", "rsl_rl", "numpy", "gymnasium", "yaml", "hydra"), _LAUNCHER),
    **dict.fromkeys(("matplotlib", "plotly", "PIL", "tensorboard"), _LAUNCHER),
    **dict.fromkeys(("isaaclab", "isaaclab_tasks", "isaaclab_rl"), _ISAAC),
    "epo_tasks": "the tasks Epo-* with robots are in the package epo_tasks: 'pip install epo_tasks'",
}
"""Packages whose absence is no bug, and what to do about it."""


NO_MEMORY = ("not enough memory", "can't allocate memory", "Storage size calculation overflowed", "out of memory")
"""What torch says if something does not fit."""


class UserError(Exception):
    """Something is wrong with the input; the message says in one line what, and what to do."""


class NonFiniteError(RuntimeError):
    """Numbers of a run are not finite any more, so that it cannot go on."""


class NonFiniteUpdateError(NonFiniteError):
    """Too many gradient steps in a row were not finite, or the models themselves."""


class LostProcessError(RuntimeError):
    """Another process of the run is gone, or does not come; the message names the ranks."""


@contextmanager
def exit_on_user_error(command: str) -> Iterator[None]:
    """End the process with one line instead of a traceback, if the reason is the user's to mend. Scripts begin with it.

    A :class:`UserError`, a full disk and too little memory end with exit code 2, a Ctrl-C that nobody else took with
    130, a run whose numbers are not finite any more with 1.
    """
    give_signals_a_stack()
    previous, interrupted = signal.getsignal(signal.SIGINT), _note_interrupts()
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read along, such as head, has seen enough; nor is there anybody to tell when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_FAILED) from None
    except UserError as error:
        line = " ".join(str(error).split())
        print(f"{command}: {line}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT) from None
    except NonFiniteError as error:
        print(f"{command}: {error}", file=sys.stderr)
        raise SystemExit(EXIT_FAILED) from None
    except LostProcessError as error:
        print(f"{command}: {error}; the last checkpoint is whole (--resume goes on)", file=sys.stderr, flush=True)
        raise SystemExit(EXIT_FAILED) from None
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
        line = _told(error)
        if line is None:
            raise
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


def _told(error: BaseException | None) -> str | None:
    """Return what to do about an error, or one that led to it, if the machine is the reason; None if it is not."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "no space left on the disk: free some; checkpoints that were written are whole (--resume goes on)"
        if isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.EACCES, errno.EROFS):
            return f"cannot write to {str(error.filename)[:200]} ({error.strerror}): name another place"
        if isinstance(error, MemoryError) or any(sign in str(error) for sign in NO_MEMORY):
            return "too little memory: take fewer environments, shorter roll-outs, smaller networks or a smaller replay"
        error = error.__cause__ or error.__context__
    return None


def did_you_mean(word: str, choices: Iterable[str], *, most: int = 3) -> str:
    """Return `` Did you mean a, b?`` with the nearest of the choices, or an empty string if none is near."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=0.5)
    return f" Did you mean {', '.join(by_lower[name] for name in near)}?" if near else ""
