"""Write a page about a run that opens in any browser, for example:

./isaaclab.sh -p scripts/report.py logs/rsl_rl/kuka_onearm_regrasp/2026-11-16_09-29-38_epo
./isaaclab.sh -p scripts/report.py RUN --output page.html
"""

from pathlib import Path

from epo_lab.base.errors import exit_on_user_error

from .arguments import Parser


def make_parser() -> Parser:
    """Return the parser of this script."""
    parser = Parser(
        description=__doc__,
        epilog="The page holds curves, generations, family tree and map of the genes, divergences, settings, versions,"
        " films and the last evaluation; it needs no network.",
    )
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--output", type=Path, help="page (default: report.html in the run folder)")
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and write the page."""
    args = make_parser().parse_args(words)
    with exit_on_user_error("report"):
        from epo_lab.commands.report import report

        return report(args.run, args.output)
