"""Measure speed, for example: ./isaaclab.sh -p tools/benchmark.py env --task Epo-Anymal-Flat-v0 --num_envs 128,512"""

import argparse
import sys

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.cli.arguments import Parser, whole


def make_parser() -> Parser:
    """One subcommand for each thing that can be measured."""
    parser = Parser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    env = commands.add_parser("env", help="environment steps a second, and the physics engine's share of the time")
    env.add_argument("--task", default="Epo-Anymal-Flat-v0", help="task ids, separated by commas")
    env.add_argument("--physics", default="ovphysx,newton_mjwarp", help="physics presets, separated by commas")
    env.add_argument("--num_envs", default="16,128,512", help="numbers of environments, separated by commas")
    env.add_argument("--steps", type=whole(1), default=50, help="policy steps a measurement (default: 50)")
    env.add_argument("--repeats", type=whole(1), default=5, help="measurements; the median counts (default: 5)")
    env.add_argument("--terms", help="observation and curriculum terms whose share to report, separated by commas")
    env.add_argument("--processor_time", action="store_true", help="of the process, which other work disturbs less")
    env.add_argument("--json", help="also write the rows to this file")
    env.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    resume = commands.add_parser("resume", help="how exactly tasks go on from their saved state, in another process")
    resume.add_argument("--task", default="Epo-Anymal-Flat-v0", help="task ids, separated by commas")
    resume.add_argument("--physics", default="ovphysx,newton_mjwarp", help="physics presets, separated by commas")
    resume.add_argument("--num_envs", type=whole(1), default=16, help="number of environments (default: 16)")
    resume.add_argument("--before", type=whole(1), default=60, help="steps before the state is saved (default: 60)")
    resume.add_argument("--steps", type=whole(1), default=100, help="steps that are compared (default: 100)")
    resume.add_argument("--seed", type=whole(0), default=0, help="seed of the actions (default: 0)")
    resume.add_argument("--unsaved", action="store_true", help="also compare with a run that does not save")
    resume.add_argument("--json", help="also write the rows to this file")
    resume.add_argument("--folder", help=argparse.SUPPRESS)
    resume.add_argument("--part", help=argparse.SUPPRESS)
    stability = commands.add_parser("stability", help="what random actions do to the physics of an Allegro-Kuka task")
    stability.add_argument("--task", default="Epo-Kuka-OneArm-Regrasp-v0", help="task id (default: %(default)s)")
    stability.add_argument("--physics", default="ovphysx", help="physics preset (default: ovphysx)")
    stability.add_argument("--num_envs", type=whole(1), default=64, help="number of environments (default: 64)")
    stability.add_argument("--steps", type=whole(1), default=5000, help="control steps (default: 5000)")
    terrain = commands.add_parser("terrain", help="what the parkour field costs to build and to look at")
    terrain.add_argument("--columns", type=whole(1), default=5, help="columns of tracks (default: 5)")
    terrain.add_argument("--grid", type=float, default=0.1, help="distance of two points in metres (default: 0.1)")
    terrain.add_argument("--num_envs", type=whole(1), default=128, help="robots that look (default: 128)")
    algorithm = commands.add_parser("algorithm", help="what a population costs, next to rsl_rl's PPO")
    algorithm.add_argument("--num_agents", type=whole(2), default=64, help="agents of EPO (default: 64)")
    algorithm.add_argument("--repeats", type=whole(1), default=7, help="pairs of measurements (default: 7)")
    algorithm.add_argument("--device", help="cpu, cuda:0, ... (default: cuda:0 if there is one)")
    envpool = commands.add_parser("envpool", help="what our interface costs on top of EnvPool's own")
    envpool.add_argument(
        "--task", default="EnvPool/HalfCheetah-v4,EnvPool/Hopper-v4", help="task ids, separated by commas"
    )
    envpool.add_argument("--num_envs", type=whole(1), default=64, help="number of environments (default: 64)")
    envpool.add_argument("--num_threads", type=whole(0), default=0, help="EnvPool's threads (default: all cores)")
    envpool.add_argument("--steps", type=whole(1), default=50, help="steps a measurement (default: 50)")
    envpool.add_argument("--repeats", type=whole(2), default=15, help="pairs of measurements (default: 15)")
    diagnostics = commands.add_parser("diagnostics", help="steps a second of the diagnostics, on one core")
    diagnostics.add_argument("--num_envs", type=whole(1), default=480, help="number of environments (default: 480)")
    diagnostics.add_argument("--steps", type=whole(1), default=200, help="steps a measurement (default: 200)")
    diagnostics.add_argument("--repeats", type=whole(1), default=5, help="measurements; the median counts (default: 5)")
    off_policy = commands.add_parser("off_policy", help="SAC, the replay and ES: ratios within a run")
    off_policy.add_argument("--width", type=whole(1), default=512, help="size of the two hidden layers (default: 512)")
    off_policy.add_argument("--batch_size", type=whole(1), default=256, help="transitions of a step (default: 256)")
    off_policy.add_argument("--repeats", type=whole(1), default=7, help="measurements; the median counts (default: 7)")
    off_policy.add_argument("--sb3", help="Python of an environment with stable-baselines3, to compare with")
    scaling = commands.add_parser(
        "scaling", help="what several processes cost: computed for many GPUs, measured for two"
    )
    scaling.add_argument(
        "--parameters", type=whole(1), default=1_000_000, help="parameters of the networks (default: 1 M)"
    )
    scaling.add_argument("--epochs", type=whole(1), default=5, help="epochs of an update (default: 5)")
    scaling.add_argument("--mini_batches", type=whole(1), default=4, help="mini-batches of an epoch (default: 4)")
    scaling.add_argument("--task", help="task ids, separated by commas, to train in one and two processes, a core each")
    scaling.add_argument("--num_envs", type=whole(1), default=64, help="environments of a process (default: 64)")
    scaling.add_argument("--iterations", type=whole(4), default=20, help="iterations of a run (default: 20)")
    scaling.add_argument("--repeats", type=whole(1), default=5, help="pairs of runs; the median counts (default: 5)")
    return parser


def main() -> int:
    """Parse the command line and measure."""
    args, overrides = make_parser().parse_known_args()
    with exit_on_user_error("benchmark"):
        if args.command == "env":
            from benchmarks.env import benchmark_envs

            return benchmark_envs(args, overrides)
        if args.command == "resume":
            from benchmarks.resume import benchmark_resume

            return benchmark_resume(args, overrides)
        if args.command == "stability":
            from benchmarks.stability import benchmark_stability

            return benchmark_stability(args, overrides)
        if overrides:
            raise UserError(f"unknown argument '{overrides[0]}': see --help")
        if args.command == "terrain":
            from benchmarks.terrain import benchmark_terrain

            return benchmark_terrain(args)
        if args.command == "envpool":
            from benchmarks.envpool import benchmark_envpool

            return benchmark_envpool(args)
        if args.command == "diagnostics":
            from benchmarks.diagnostics import benchmark_diagnostics

            return benchmark_diagnostics(args)
        if args.command == "off_policy":
            from benchmarks.off_policy import benchmark_off_policy

            return benchmark_off_policy(args)
        if args.command == "scaling":
            from benchmarks.scaling import benchmark_scaling

            return benchmark_scaling(args)
        from benchmarks.algorithm import benchmark_algorithm

        return benchmark_algorithm(args)


if __name__ == "__main__":
    sys.exit(main())
