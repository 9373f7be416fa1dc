"""Compare agents, or values of a setting, over seeds and tasks, for example:

./isaaclab.sh -p scripts/compare.py --agents ppo,sapg,epo --tasks Epo-Diag-Deceptive-v0 --seeds 10
./isaaclab.sh -p scripts/compare.py --agents epo --tasks Epo-Diag-Cycle-v0 agent.algorithm.evolution.gamma=0.1,0.2
"""

from .arguments import Parser, add_logger, add_size, whole
from .run import run

DIAGNOSTICS = "Epo-Diag-Smooth-v0,Epo-Diag-Deceptive-v0,Epo-Diag-Cycle-v0,Epo-Diag-Memory-v0"


def make_parser() -> Parser:
    """Lists are separated by commas."""
    parser = Parser(
        description=__doc__,
        epilog="Settings follow as key=value (env.x=1, agent.y=2), hold for every run and stand in its name; one with"
        "\nseveral values (1,2 or range(1,4)) is swept, several such in all combinations. Run folders are below"
        "\nlogs/rsl_rl/compare; the same command goes on with a comparison that was interrupted.",
    )
    parser.add_argument("--agents", default="ppo,sapg,epo", help="agents to compare (default: %(default)s)")
    parser.add_argument("--tasks", default=DIAGNOSTICS, help="tasks (default: the four diagnostics)")
    parser.add_argument("--seeds", default="10", help="number of seeds, or a list (default: %(default)s)")
    parser.add_argument("--jobs", type=whole(1), default=2, help="runs at a time (default: %(default)s)")
    parser.add_argument("--num_envs", type=whole(1), help="number of environments of every run")
    parser.add_argument("--max_iterations", type=whole(1), help="iterations of every run (default: the agent's)")
    parser.add_argument("--experiment", help="a file of config/experiment, the settings of a result we claim")
    parser.add_argument("--output", default="comparison", help="folder of scores.csv and scores.png")
    parser.add_argument("--part", help="only train the first of four parts: 1/4; the table comes without this option")
    parser.add_argument("--add", action="store_true", help="keep other runs that are in scores.csv already")
    add_size(parser)
    add_logger(parser, group="name of the --output folder")
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and compare."""
    return run("compare", make_parser(), words)
