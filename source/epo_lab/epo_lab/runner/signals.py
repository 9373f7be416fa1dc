"""Stop a run between two iterations when a signal asks for it."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

from epo_lab.base.signal_stack import give_signals_a_stack


class StopSignal:
    """Notes SIGINT and SIGTERM while it is entered; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignal:
        give_signals_a_stack()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
        print("\n[epo-lab] stopping after this iteration; once more to stop at once", file=sys.stderr, flush=True)
