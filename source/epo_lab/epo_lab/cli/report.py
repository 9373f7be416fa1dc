"""Write a page about one or several runs that opens in any browser, for example:

./isaaclab.sh -p scripts/report.py logs/rsl_rl/kuka_onearm_regrasp/2026-11-16_09-29-38_epo
./isaaclab.sh -p scripts/report.py RUN_A RUN_B RUN_C --output page.html --pdf
./isaaclab.sh -p scripts/report.py RUN --watch
"""

from pathlib import Path

from epo_lab.base.errors import exit_on_user_error

from .arguments import Parser, add_address


def make_parser() -> Parser:
    """Return the parser of this script."""
    parser = Parser(
        description=__doc__,
        epilog="The page begins with five sentences about the run, and holds curves, every agent, generations, family"
        "\ntree and map of the genes, settings, versions, films and the last evaluation; it needs no network. The"
        "\ncamera above each figure saves it as SVG.",
    )
    parser.add_argument("runs", nargs="+", type=Path, help="run folders; several stand beside each other")
    parser.add_argument(
        "--output", type=Path, help="page (default: report.html in the run folder; of several runs, in this one)"
    )
    parser.add_argument("--pdf", action="store_true", help="also print the page as PDF, with an installed Chromium")
    parser.add_argument("--watch", action="store_true", help="serve the page of runs that go on, until Ctrl-C")
    add_address(parser, 8081, "--watch")
    return parser


def main(words: list[str] | None = None) -> int:
    """Parse the command line and write the page."""
    args = make_parser().parse_args(words)
    with exit_on_user_error("report"):
        from epo_lab.commands.report import report

        return report(args)
