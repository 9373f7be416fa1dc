"""A stack for signal handlers, without which Ctrl-C can damage the memory of a process that computes.

PyTorch's matrix kernels for LSTMs on CPU (oneDNN's, compiled at run time) let the stack pointer point into their
workspace on the heap. A signal that arrives meanwhile has its frame written there, over whatever lies below, and the
process aborts soon after ("corrupted size vs. prev_size"). On a stack of its own the handler touches nothing.
"""

from __future__ import annotations

import faulthandler
import sys


def give_signals_a_stack() -> None:
    """Have the main thread, which takes the signals of a process, handle them on a stack of their own.

    Python's handlers ask for such a stack, and the fault handler makes one. It also says where in the code a crash of a
    native library happened.
    """
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        faulthandler.enable(file=sys.__stderr__)
