"""What a training run shows in the terminal."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import TextIO

BAR_WIDTH = 24


class Console:
    """One line of progress: redrawn in a terminal, printed every few seconds into a file."""

    def __init__(self, stream: TextIO | None = None, interval: float = 10.0, *, patient: bool = False) -> None:
        """Create the line.

        Args:
            stream: Where it goes. Default None: standard output.
            interval: Seconds between two lines in a file.
            patient: Whether to show nothing of what takes less than that. Default False.
        """
        self._stream = stream or sys.stdout
        self._interval = interval
        self._live = self._stream.isatty()
        self._last = time.monotonic() if patient else -float("inf")
        self._begun = not patient

    def update(self, done: int, total: int, fields: dict[str, str], *, final: bool = False) -> None:
        """Show how far the run is and what it reached.

        Args:
            done: Finished iterations.
            total: Iterations of the whole run.
            fields: What to show, by name.
            final: Whether this is the last line.
        """
        now = time.monotonic()
        due = now - self._last >= self._interval or (self._live and self._begun)
        if not due and not (final and self._begun):
            return
        self._last, self._begun = now, True
        line = " | ".join([self._progress(done, total), *(f"{name} {value}" for name, value in fields.items())])
        if self._live:
            self._stream.write(f"\r\x1b[K{line}" + ("\n" if final else ""))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def _progress(self, done: int, total: int) -> str:
        share = done / max(total, 1)
        count = f"{done:>{len(str(total))}}/{total}"
        if not self._live:
            return f"{count} ({share:4.0%})"
        filled = round(share * BAR_WIDTH)
        return f"{'━' * filled}{'─' * (BAR_WIDTH - filled)} {count}"


def duration(seconds: float) -> str:
    """Return a duration as h:mm:ss."""
    return str(timedelta(seconds=round(seconds)))


def count(number: float) -> str:
    """Return a number in at most five characters: 950, 12.3k, 4.5M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f}{unit}"
    return f"{number:.0f}"
