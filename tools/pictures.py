"""Render a picture of each task, all its views side by side, without a display and a checkpoint, for example:

./isaaclab.sh -p tools/pictures.py --task Epo-Anymal-Flat-v0 --folder pictures
"""

import sys
from pathlib import Path

from epo_lab.base.errors import exit_on_user_error
from epo_lab.cli.arguments import Parser, whole

ROOT = Path(__file__).resolve().parents[1]


def make_parser() -> Parser:
    """Return the parser of this script."""
    parser = Parser(description=__doc__)
    parser.add_argument("--task", required=True, help="task id, or several with commas")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "tasks", help="where to (default: docs/tasks)")
    parser.add_argument("--seed", type=whole(0), default=0, help="seed of the environment (default: 0)")
    parser.add_argument("--terrain", action="store_true", help="draw only the terrain of a parkour task")
    parser.add_argument("--verbose", action="store_true", help="show everything that Isaac Lab prints")
    return parser


def main() -> int:
    """Parse the command line and render."""
    args, overrides = make_parser().parse_known_args()
    with exit_on_user_error("pictures"):
        from task_pictures import draw_terrain, take_picture

        for task in args.task.split(","):
            if args.terrain:
                print(*draw_terrain(task, args.folder, overrides, verbose=args.verbose), sep="\n")
                continue
            print(take_picture(task, args.folder, overrides, seed=args.seed, verbose=args.verbose))
    return 0


if __name__ == "__main__":
    sys.exit(main())
