"""Write the policy of a checkpoint as JIT and ONNX, without playing it."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from epo_lab.base.errors import exit_on_user_error
from epo_lab.runner.folder import check_writable

from .policy import choose_agents, find_trained, load_policy
from .quiet import loading, quiet

FOLDER = "exported"
"""Folder beside the checkpoint."""


def export(args: argparse.Namespace, rest: list[str], config_dir: Path) -> int:
    """Export and return the exit code.

    Args:
        args: Options of ``scripts/export.py``.
        rest: What that script did not understand: launcher options, presets and overrides.
        config_dir: The ``config/`` folder.
    """
    with quiet(loading(args.task), verbose=args.verbose):
        trained = find_trained(args.checkpoint, args, rest, config_dir)
        members = choose_agents(args.members, trained)
        folder = trained.checkpoint.parent / FOLDER
        check_writable(folder)
    with ExitStack() as stack:
        with quiet(trained.backend.starting, verbose=args.verbose):
            env = stack.enter_context(trained.backend.open())
            stack.enter_context(exit_on_user_error("export"))
            files = load_policy(env, trained).export(folder, members, trained.backend.spec.id)
        print(f"Exported: {', '.join(files)} in {folder}")
    return 0
