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


def add_size(parser: Parser) -> None:
    """Add what says how large a run is, and where it computes."""
    parser.add_argument("--profile", help="size of the run: cpu, gpu or paper (default: gpu with CUDA, else cpu)")
    parser.add_argument("--device", help="cpu, cuda:0, ... (default: cuda:0 if there is one)")
    parser.add_argument("--verbose", action="store_true", help="show everything that Isaac Lab prints")


def add_trained(parser: Parser) -> None:
    """Add what names a run that was trained, and who of its population is meant."""
    parser.add_argument("--task", help="task id (default: that of the checkpoint's run)")
    parser.add_argument(
        "--members", "--agents", default="master", help="who is meant: master (default), all, or numbers such as 0,3"
    )
    parser.add_argument("--agent", help="kind of agent, such as ppo (default: that of the run)")
    parser.add_argument("--experiment_name", help="folder below logs/rsl_rl, for 'latest' and 'best'")
    parser.add_argument("--run_name", help="only runs of this name, for 'latest' and 'best'")


CHECKPOINTS = "a file, a run folder, 'latest' (default), 'best', 'wandb:PATH', or 'pretrained', which epo-lab brings"
"""What names a checkpoint."""


def add_viewer(parser: Parser) -> None:
    """Add what shows the simulation while it runs."""
    parser.add_argument("--viz", "--visualizer", help="watch: viser, newton_gl, rerun, kit, ... (default: headless)")
    add_address(parser, 8080, "--viz viser")


def add_address(parser: Parser, port: int, of: str) -> None:
    """Add where a page is served."""
    parser.add_argument("--port", type=whole(1, 65535), default=port, help=f"port of {of} (default: %(default)s)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="who may watch: 0.0.0.0 is the whole network (default: this machine)"
    )


def add_logger(parser: Parser, group: str = "none") -> None:
    """Add where curves go.

    Args:
        parser: Parser to add it to.
        group: Default of the W&B group, in words.
    """
    parser.add_argument(
        "--logger", choices=("tensorboard", "wandb", "neptune"), help="where curves go besides curves.csv"
    )
    parser.add_argument("--log_project_name", help="project of the wandb or neptune logger")
    parser.add_argument("--wandb_entity", help="user or team of the W&B run")
    parser.add_argument("--wandb_group", help=f"group of the W&B run (default: {group})")
    parser.add_argument("--wandb_tags", help="tags of the W&B run, separated by commas")
    parser.add_argument(
        "--wandb_mode", choices=("online", "offline", "disabled"), help="offline: 'wandb sync' sends the run later"
    )


def config_dir() -> Path:
    """Return the ``config/`` folder with the experiments: the checkout's, else that of the current folder."""
    return (checkout() or Path.cwd()) / "config"
