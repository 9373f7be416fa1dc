"""Play a checkpoint, for example:

./isaaclab.sh -p scripts/play.py --task Epo-Anymal-Flat-v0 --video
./isaaclab.sh -p scripts/play.py --checkpoint RUN --viz viser --members all
"""

from .arguments import CHECKPOINTS, Parser, add_size, add_trained, add_viewer, whole
from .run import run


def make_parser() -> Parser:
    """Options are named as in Isaac Lab's own play command."""
    parser = Parser(
        description=__doc__,
        epilog="Presets and settings follow as key=value: physics=ovphysx|newton_mjwarp|isaacsim_physx,"
        " env.x=1, agent.y=2.\n"
        "Without --viz every environment plays its episodes and the result is printed.",
    )
    parser.add_argument("--checkpoint", help=CHECKPOINTS)
    add_trained(parser)
    parser.add_argument(
        "--num_envs", type=int, help="number of environments (default: at most 50; to be seen 4, or one an agent)"
    )
    parser.add_argument("--episodes", type=whole(1), default=1, help="episodes an environment (default: 1)")
    parser.add_argument("--seed", type=whole(0), help="seed of the environments")
    parser.add_argument(
        "--video", action="store_true", help="film without a display: mp4 with the video extra, else gif"
    )
    parser.add_argument("--video_length", type=whole(1), default=250, help="steps to film (default: 250)")
    parser.add_argument("--view", help="with --video: one of the task's views, such as front or side")
    parser.add_argument("--full_episodes", action="store_true", help="with --video: go on until the episodes end")
    parser.add_argument(
        "--export", action="store_true", help="also write exported/policy.pt (JIT) and .onnx of --members"
    )
    parser.add_argument("--train_env_cfg", action="store_true", help="play in the training environment as it is")
    add_size(parser)
    add_viewer(parser)
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and play."""
    return run("play", make_parser(), words)
