"""Play a checkpoint, for example:

./isaaclab.sh -p scripts/play.py --task Epo-Anymal-Flat-v0 --video
./isaaclab.sh -p scripts/play.py --checkpoint RUN --viz viser --members all
"""

from .arguments import Parser, whole
from .run import run


def make_parser() -> Parser:
    """Options are named as in Isaac Lab's own play command."""
    parser = Parser(
        description=__doc__,
        epilog="Presets and settings follow as key=value: physics=ovphysx|newton_mjwarp|isaacsim_physx,"
        " env.x=1, agent.y=2.\n"
        "Without --viz every environment plays its episodes and the result is printed.",
    )
    parser.add_argument("--task", help="task id (default: that of the checkpoint's run)")
    parser.add_argument(
        "--checkpoint", help="a file, a run folder, 'latest' (default), 'best', or 'pretrained', which epo-lab brings"
    )
    parser.add_argument(
        "--members", "--agents", default="master", help="who plays: master (default), all, or numbers such as 0,3"
    )
    parser.add_argument("--agent", help="kind of agent, such as ppo (default: that of the run)")
    parser.add_argument("--profile", help="size of the run: cpu, gpu or paper (default: gpu with CUDA, else cpu)")
    parser.add_argument("--experiment_name", help="folder below logs/rsl_rl, for 'latest'")
    parser.add_argument("--run_name", help="only runs of this name, for 'latest'")
    parser.add_argument(
        "--num_envs", type=int, help="number of environments (default: at most 50; to be seen 4, or one an agent)"
    )
    parser.add_argument("--episodes", type=whole(1), default=1, help="episodes an environment (default: 1)")
    parser.add_argument("--seed", type=whole(0), help="seed of the environments")
    parser.add_argument("--device", help="cpu, cuda:0, ... (default: cuda:0 if there is one)")
    parser.add_argument("--viz", "--visualizer", help="watch: viser, newton_gl, rerun, kit, ... (default: headless)")
    parser.add_argument("--port", type=whole(1, 65535), default=8080, help="port of --viz viser (default: %(default)s)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="who may watch: 0.0.0.0 is the whole network (default: this machine)"
    )
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
    parser.add_argument("--verbose", action="store_true", help="show everything that Isaac Lab prints")
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and play."""
    return run("play", make_parser(), words)
