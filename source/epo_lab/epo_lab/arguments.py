"""Types of command line options."""

from __future__ import annotations

import argparse
from collections.abc import Callable

MOST = 2**31 - 1


def whole(least: int, most: int = MOST) -> Callable[[str], int]:
    """Return a type of options that are whole numbers from ``least`` to ``most``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            bound = f"at least {least}" if value < least else f"at most {most}"
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number of {bound}")
        return value

    return parse
