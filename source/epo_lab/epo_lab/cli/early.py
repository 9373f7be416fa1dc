"""What is wrong with a command line, as far as names tell: said before anything heavy is loaded."""

from __future__ import annotations

import argparse

from epo_lab.base.checkout import typed
from epo_lab.base.errors import UserError, did_you_mean
from epo_lab.configs.names import ENVPOOL, TaskRow, table_is_complete, task_table
from epo_lab.configs.overrides import split_overrides
from epo_lab.configs.sizes import check_size

LAUNCHER_FLAGS = (
    "--xr",
    "--verbose",
    "--info",
    "--deterministic",
    "--anim_recording_enabled",
)
LAUNCHER_VALUES = (
    "--livestream",
    "--device",
    "--visualizer",
    "--viz",
    "--experience",
    "--kit_args",
    "--anim_recording_start_time",
    "--anim_recording_stop_time",
    "--max_visible_envs",
)
"""Options of Isaac Lab's launcher, without and with a value."""


def check_request(parser: argparse.ArgumentParser, args: argparse.Namespace, rest: list[str]) -> None:
    """Raise a :class:`UserError` if a task, an agent, a size or an option is misspelt.

    Args:
        parser: Parser of the command.
        args: What it understood.
        rest: What it did not understand: launcher options, presets and overrides.
    """
    check_options(parser, rest)
    if getattr(args, "profile", None) is not None:
        check_size(args.profile)
    if hasattr(args, "tasks"):
        tasks, agents = args.tasks.split(","), args.agents.split(",")
    else:
        tasks, agents = [args.task], [args.agent]
    for task in tasks:
        row = find_row(task)
        for agent in agents if row is not None else ():
            check_agent(row, agent)


def find_row(task: str | None) -> TaskRow | None:
    """Return a task of the table; None if only a registry can tell. Raises if there is no such task."""
    if task is None or ":" in task or task.lower().startswith(ENVPOOL.lower()):
        return None
    table = task_table()
    if task not in table and table_is_complete():
        hint = did_you_mean(task, table) or f" '{typed('list')} --all' lists them."
        raise UserError(f"unknown task '{task}'.{hint}")
    return table.get(task)


def check_agent(row: TaskRow, agent: str | None) -> None:
    """Raise a :class:`UserError` if a task has no agent of this name; None is its default."""
    if not row.agents:
        raise UserError(f"{row.name} has no rsl_rl agent: populations are made from a task's rsl_rl PPO config")
    if agent is None or agent.endswith("_entry_point") or agent in row.agents:
        return
    raise UserError(
        f"{row.name} has no agent '{agent}'; it has: {', '.join(row.agents)}.{did_you_mean(agent, row.agents)}"
    )


def check_options(parser: argparse.ArgumentParser, rest: list[str]) -> None:
    """Raise a :class:`UserError` if an option is neither the command's nor the launcher's, or a setting is none."""
    settings, value_follows = [], False
    for token in rest:
        if value_follows:
            value_follows = False
            continue
        name, equals, _ = token.partition("=")
        if not token.startswith("-"):
            settings.append(token)
        elif name in LAUNCHER_VALUES:
            value_follows = not equals
        elif name not in LAUNCHER_FLAGS:
            known = [*parser._option_string_actions, *LAUNCHER_VALUES, *LAUNCHER_FLAGS]
            raise UserError(
                f"unknown argument '{token}': see --help; settings are given as env.x=1 or agent.y=2."
                f"{did_you_mean(name, [option for option in known if option.startswith('--')])}"
            )
    split_overrides(settings)
