"""Serve the page of runs that go on; the same as ``epo-lab report RUN --watch``."""

from . import report
from .report import make_parser

__all__ = ["main", "make_parser"]


def main(words: list[str]) -> int:
    """Parse the command line and serve the page until Ctrl-C."""
    return report.main([*words, "--watch"])
