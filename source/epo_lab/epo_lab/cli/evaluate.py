"""Score checkpoints with the deterministic policy, for example:

./isaaclab.sh -p scripts/evaluate.py --task Epo-Anymal-Flat-v0
./isaaclab.sh -p scripts/evaluate.py --checkpoint RUN_A RUN_B --seeds 3 --physics ovphysx,newton_mjwarp
./isaaclab.sh -p scripts/evaluate.py --task Epo-Diag-Deceptive-v0 --members all
"""

from .arguments import CHECKPOINTS, Parser, add_size, add_trained, whole
from .run import run


def make_parser() -> Parser:
    """Options are named as in play.py."""
    parser = Parser(
        description=__doc__,
        epilog="Presets and settings follow as key=value: env.x=1. Networks are built as the run folder says.\n"
        "Every agent plays the same number of whole episodes in every environment. Published scores stand below ours.",
    )
    parser.add_argument("--checkpoint", action="extend", nargs="+", help=f"one or several: {CHECKPOINTS}")
    add_trained(parser)
    parser.add_argument("--episodes", type=whole(1), default=1, help="episodes of an agent an environment (default: 1)")
    parser.add_argument("--seeds", default="1", help="number of seeds, or a list such as 0,1,2 (default: %(default)s)")
    parser.add_argument("--physics", help="engine, or several: ovphysx,newton_mjwarp (default: the task's own)")
    parser.add_argument("--num_envs", type=int, help="number of environments (default: at most 50; diagnostics 1,024)")
    parser.add_argument("--output", help="JSON file (default: evaluation.json in the run folder of the first)")
    add_size(parser)
    parser.set_defaults(viz=None)
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and evaluate."""
    return run("evaluate", make_parser(), words)
