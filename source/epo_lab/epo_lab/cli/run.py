"""From a command line to the command: names first, and only then what is heavy to load."""

from __future__ import annotations

from importlib import import_module

from epo_lab.base.errors import exit_on_user_error
from epo_lab.base.lazy import postpone, uncollected
from epo_lab.base.processes import end_with_parent, launched_world_size

from .arguments import Parser, config_dir
from .early import check_request

POSTPONED = ("wandb", "git")
"""Packages that rsl_rl imports for loggers and reports; a second to load, and hardly any run uses them."""


def run(name: str, parser: Parser, words: list[str] | None) -> int:
    """Parse a command line, run ``epo_lab.commands.NAME.NAME`` and return the exit code.

    Args:
        name: Name of the command.
        parser: Its options.
        words: The command line; None is that of the process.
    """
    args, rest = parser.parse_known_args(words)
    with exit_on_user_error(name):
        check_request(parser, args, rest)
        postpone(*POSTPONED)
        if launched_world_size() > 1:
            # a torchrun that is killed must not leave its workers training on
            end_with_parent()
        with uncollected(freeze=True):
            command = getattr(import_module(f"epo_lab.commands.{name}"), name)
        return command(args, rest, config_dir())
