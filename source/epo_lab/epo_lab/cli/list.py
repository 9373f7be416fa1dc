"""Show tasks, agents, metrics and sizes, for example:

./isaaclab.sh -p scripts/list.py
./isaaclab.sh -p scripts/list.py Velocity --all
"""

import re
import textwrap

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.base.tables import markdown
from epo_lab.configs.names import AGENTS_DIR, ENVPOOL, agent_names, table_is_complete, task_table

from .arguments import Parser

OURS = "Epo-"
WIDTH = 100


def make_parser() -> Parser:
    """Return the parser of this command."""
    parser = Parser(
        description=__doc__,
        epilog="Every agent works on every task that has an rsl_rl PPO config; EnvPool's tasks are in docs/envpool.md.",
    )
    parser.add_argument("text", nargs="?", default="", help="only tasks whose names contain this")
    parser.add_argument("--all", action="store_true", help="Isaac Lab's own tasks too")
    parser.add_argument("--names", choices=("tasks", "agents"), help="only names, a line each, for other programs")
    return parser


def describe(agent: str) -> str:
    """Return the first sentence of an agent's file, as much of it as fits a line."""
    lines = (AGENTS_DIR / f"{agent}.yaml").read_text().splitlines()
    comment = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    sentence = re.split(r"(?<!\beq)\. ", " ".join(comment))[0].rstrip(".")
    return textwrap.shorten(sentence, WIDTH, placeholder=" ...")


def main(words: list[str] | None = None) -> int:
    """Parse the command line and print the tables."""
    args = make_parser().parse_args(words)
    with exit_on_user_error("list"):
        if args.names == "agents":
            print("\n".join(agent_names()))
            return 0
        everything = args.all or args.names is not None
        rows = [
            row
            for row in task_table().values()
            if args.text.lower() in row.name.lower() and (everything or row.name.startswith(OURS))
        ]
        if args.names == "tasks":
            print("\n".join(row.name for row in rows))
            return 0
        if not rows:
            more = "" if args.all else "; --all looks among Isaac Lab's too"
            raise UserError(f"no task has '{args.text}' in its name{more}")
        table = [
            [row.name, row.default, row.metric.removeprefix("Metrics/"), row.sizes, " ".join(row.more)] for row in rows
        ]
        print(markdown(["task", "default agent", "metric", "environments (cpu/gpu/paper)", "more agents"], table))
        print(f"\nAgents of every task that has a default one; {ENVPOOL}<id> names EnvPool's tasks:\n")
        print(markdown(["agent", "what"], [[name, describe(name)] for name in agent_names()]))
        if not table_is_complete():
            print("\nTasks of other packages are not in this table; './isaaclab.sh list_envs --all' shows them.")
    return 0
