"""The command ``epo-lab``: train, play, export, evaluate, compare, report, watch, curves, list, completion."""

from __future__ import annotations

import sys
from importlib import import_module

from epo_lab.base.errors import EXIT_BAD_INPUT, did_you_mean

COMMANDS = {
    "train": "train an agent on a task",
    "play": "watch, film and score a checkpoint",
    "export": "write a policy as JIT and ONNX",
    "evaluate": "score checkpoints by the protocol of their task",
    "compare": "train agents over seeds and tasks, and rank them",
    "report": "write a page about a run",
    "watch": "serve the page of a run while it trains",
    "curves": "draw the curves of several runs",
    "list": "show tasks, agents, metrics and sizes",
    "completion": "print the completion of a shell: bash, zsh or fish",
}


def usage() -> str:
    """Return what the command can do."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: epo-lab COMMAND [options]", "", *lines, "", "epo-lab COMMAND --help shows its options."])


def main(words: list[str] | None = None) -> int:
    """Run the command that the first word names."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0] in ("-h", "--help"):
        print(usage(), file=sys.stdout if words else sys.stderr)
        return 0 if words else EXIT_BAD_INPUT
    name = words[0]
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS) or f" There are: {', '.join(COMMANDS)}."
        print(f"epo-lab: unknown command '{name}'.{hint}", file=sys.stderr)
        return EXIT_BAD_INPUT
    # messages of a command begin with its name
    sys.argv[0] = name
    return import_module(f"epo_lab.cli.{name}").main(words[1:])
