"""Write the policy of a checkpoint for a robot or another program, for example:

./isaaclab.sh -p scripts/export.py --checkpoint RUN
./isaaclab.sh -p scripts/export.py --task Epo-Anymal-Flat-v0 --checkpoint best --members 0,3
"""

from .arguments import CHECKPOINTS, Parser, add_size, add_trained
from .run import run


def make_parser() -> Parser:
    """Options are named as in play.py."""
    parser = Parser(
        description=__doc__,
        epilog="Writes exported/policy.pt (JIT) and policy.onnx beside the checkpoint, for plain observations and any"
        "\nbatch size. The ONNX file says what a robot must know: rates, observations, joints, scales. One environment"
        "\nis opened to read that; nothing is played.",
    )
    parser.add_argument("--checkpoint", help=CHECKPOINTS)
    add_trained(parser)
    add_size(parser)
    parser.set_defaults(viz=None, num_envs=1, seed=None)
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and export."""
    return run("export", make_parser(), words)
