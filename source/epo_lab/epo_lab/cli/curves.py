"""Draw the curves of several runs over the environment steps, for example:

./isaaclab.sh -p scripts/curves.py epo=logs/rsl_rl/x/RUN_A ppo=logs/rsl_rl/x/RUN_B --tags Train/mean_reward
"""

from pathlib import Path

from epo_lab.base.errors import UserError, exit_on_user_error

from .arguments import Parser, whole

FORMATS = (".png", ".svg", ".pdf", ".jpg")
TAGS = "Train/mean_reward,Master/return,Policy/mean_std,Train/mean_episode_length"


def make_parser() -> Parser:
    """Return the parser of this script."""
    parser = Parser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders; a name can go before one: epo=logs/...")
    parser.add_argument("--tags", default=TAGS, help="what to draw, separated by commas (default: %(default)s)")
    parser.add_argument("--smooth", type=whole(1), default=20, help="logged values to average (default: 20)")
    parser.add_argument("--means", help="also print means over iterations, such as 0-99,900-999")
    parser.add_argument("--output", type=Path, default=Path("curves.png"), help="picture (default: curves.png)")
    return parser


def parse_ranges(text: str | None) -> list[tuple[int, int]]:
    """Return the first and the last iteration of each of ``0-99,900-999``."""
    try:
        pairs = [part.split("-") for part in text.split(",")] if text else []
        return [(int(first), int(last)) for first, last in pairs]
    except ValueError:
        raise UserError(f"--means {text}: name iterations such as 0-99,900-999") from None


def print_means(runs: dict[str, Path], tags: list[str], ranges: list[tuple[int, int]]) -> None:
    """Print a row a tag and a column for each run and range."""
    from epo_lab.runner.curves import mean_over, read_curves

    columns = [(name, read_curves(path)[1], span) for name, path in runs.items() for span in ranges]
    print(" | ".join(["mean over iterations", *(f"{name} {span[0]}-{span[1]}" for name, _, span in columns)]))
    for tag in tags:
        means = [mean_over(rows, tag, *span) for _, rows, span in columns]
        print(" | ".join([tag, *("" if mean is None else f"{mean:.4g}" for mean in means)]))


def main(words: list[str] | None = None) -> int:
    """Parse the command line and draw."""
    args = make_parser().parse_args(words)
    with exit_on_user_error("curves"):
        from epo_lab.runner.curves import plot_curves
        from epo_lab.runner.folder import output_file

        ranges, tags = parse_ranges(args.means), args.tags.split(",")
        runs = {}
        for text in map(str, args.runs):
            name, _, folder = text.rpartition("=")
            path = Path(folder) / "curves.csv"
            if not path.is_file():
                raise UserError(f"{path} does not exist: name run folders, such as logs/rsl_rl/anymal_flat/<time>")
            runs[name or Path(folder).name] = path
        if not args.output.parent.is_dir():
            raise UserError(f"--output {args.output}: there is no folder {args.output.parent}")
        output = output_file(args.output)
        if output.suffix.lower() not in FORMATS:
            raise UserError(f"--output {args.output}: name a picture, {', '.join(FORMATS)}")
        if not plot_curves(runs, output, tags, smooth=args.smooth):
            raise UserError(f"--tags {args.tags}: no run has logged any of these; curves.csv names what there is")
        print(f"Picture: {args.output}")
        if ranges:
            print_means(runs, tags, ranges)
    return 0
