"""Draw the curves of several runs over the environment steps, for example:

./isaaclab.sh -p scripts/curves.py epo=logs/rsl_rl/x/RUN_A ppo=logs/rsl_rl/x/RUN_B --tags Train/mean_reward
"""

import argparse
import sys
from pathlib import Path

from epo_lab.errors import UserError, exit_on_user_error

TAGS = "Train/mean_reward,Master/return,Policy/mean_std,Train/mean_episode_length"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders; a name can go before one: epo=logs/...")
    parser.add_argument("--tags", default=TAGS, help="what to draw, separated by commas (default: %(default)s)")
    parser.add_argument("--smooth", type=int, default=20, help="logged values to average (default: 20)")
    parser.add_argument("--output", type=Path, default=Path("curves.png"), help="picture (default: curves.png)")
    return parser


def main() -> int:
    """Parse the command line and draw."""
    args = make_parser().parse_args()
    with exit_on_user_error("curves"):
        from epo_lab.runners.curves import plot_curves

        runs = {}
        for text in map(str, args.runs):
            name, _, folder = text.rpartition("=")
            path = Path(folder) / "curves.csv"
            if not path.is_file():
                raise UserError(f"{path} does not exist: name run folders, such as logs/rsl_rl/anymal_flat/<time>")
            runs[name or Path(folder).name] = path
        plot_curves(runs, args.output, args.tags.split(","), smooth=args.smooth)
        print(f"Picture: {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
