"""Train an agent on a task, for example: ./isaaclab.sh -p scripts/train.py --task Epo-Anymal-Flat-v0"""

from .arguments import Parser, add_logger, add_size, add_viewer, whole
from .run import run


def make_parser() -> Parser:
    """Options are named as in Isaac Lab's own train command."""
    parser = Parser(
        description=__doc__,
        epilog="Presets and settings follow as key=value: physics=ovphysx|newton_mjwarp|isaacsim_physx,"
        " env.x=1, agent.y=2.\n"
        "Isaac Lab's launcher options work too (--livestream, --kit_args, ...).\n"
        "Exit codes: 0 finished, 2 bad input, 130 stopped with Ctrl-C, 143 stopped with SIGTERM (both after saving).",
    )
    parser.add_argument("--task", help="task id; the command 'list' names them")
    parser.add_argument("--agent", help="agent of the task, such as ppo (default: the task's own)")
    parser.add_argument("--experiment", help="a file of config/experiment, the settings of a result we claim")
    parser.add_argument("--num_envs", type=int, help="number of environments")
    parser.add_argument("--max_iterations", type=whole(1), help="iterations of the whole run, resumed parts included")
    parser.add_argument("--seed", type=whole(0), help="seed of environments, networks and actions")
    parser.add_argument("--experiment_name", help="folder of the run below logs/rsl_rl")
    parser.add_argument("--run_name", help="suffix of the run folder")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the latest run, or with --checkpoint's, in its folder"
    )
    parser.add_argument(
        "--auto_resume", action="store_true", help="resume if --run_name has a checkpoint already, else begin; for jobs"
    )
    parser.add_argument("--checkpoint", help="begin from a file, a run folder, 'latest' or 'wandb:PATH'")
    add_size(parser)
    add_viewer(parser)
    add_logger(parser)
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and train."""
    return run("train", make_parser(), words)
