"""Command lines: what is wrong with one is said in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from epo_lab.base.checkout import checkout, typed
from epo_lab.base.errors import EXIT_BAD_INPUT
from epo_lab.base.options import MOST


class Parser(argparse.ArgumentParser):
    """Parser of a script, which shows its docstring as it is and complains in one line."""

    def __init__(self, **options: str | None) -> None:
        """Create the parser; see :class:`argparse.ArgumentParser`."""
        if checkout() is None:
            name = Path(sys.argv[0]).stem
            text = (options.get("description") or "").replace(f"./isaaclab.sh -p scripts/{name}.py", typed(name))
            options |= {"description": text, "prog": typed(name)}
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit."""
        print(f"{Path(sys.argv[0]).stem}: {message}; see --help", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT)


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


def config_dir() -> Path:
    """Return the ``config/`` folder with the experiments: the checkout's, else that of the current folder."""
    return (checkout() or Path.cwd()) / "config"
