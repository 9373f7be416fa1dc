"""Film a controller without learning that picks cubes off the table, on either physics engine, for example:

./isaaclab.sh -p tools/scripted_lift.py --physics newton_mjwarp --film lift.gif
"""

import sys
from pathlib import Path

from epo_lab.base.errors import exit_on_user_error
from epo_lab.cli.arguments import Parser, whole


def make_parser() -> Parser:
    """Return the parser of this script."""
    parser = Parser(description=__doc__)
    parser.add_argument("--physics", default="ovphysx", help="ovphysx (default) or newton_mjwarp")
    parser.add_argument("--num_envs", type=whole(1), default=4, help="number of environments (default: 4)")
    parser.add_argument("--film", type=Path, default=Path("scripted_lift.gif"), help="file (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="show everything that Isaac Lab prints")
    return parser


def main() -> int:
    """Parse the command line, lift and film."""
    args = make_parser().parse_args()
    with exit_on_user_error("scripted_lift"):
        from task_pictures import film, open_filmed

        from epo_lab.commands.quiet import quiet
        from epo_lab.commands.tasks import load_tasks

        load_tasks()
        from scripted.lift import OVERRIDES, TASK, prepare_lift

        with (
            quiet("Lifting", verbose=args.verbose),
            open_filmed(TASK, [f"physics={args.physics}", *OVERRIDES], args.num_envs) as env,
        ):
            path = film(env, prepare_lift(env), args.film)
            lifted = int(env.command_manager.get_term("goal").lifted.sum())
        print(f"{lifted} of {args.num_envs} cubes lifted; film: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
