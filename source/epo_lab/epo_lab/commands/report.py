"""Write the report of one or several runs, or serve it while they go on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from epo_lab.base.errors import UserError
from epo_lab.report.page import FILE_NAME, make_page, write_report
from epo_lab.report.record import RunRecord, read_run
from epo_lab.runner.folder import output_file

from . import viewer

METRICS = ("Metrics/successes", "Metrics/score", "Metrics/terrain_level", "Metrics/episode_return")
"""Metrics of tasks, tried in this order, so that Isaac Lab need not be loaded for a name."""


def report(args: argparse.Namespace) -> int:
    """Write the page, or serve it, and return the exit code.

    Args:
        args: Options of ``scripts/report.py``.
    """
    runs = [read_run(folder) for folder in args.runs]
    for line in [line for run in runs for line in run.damaged]:
        print(line, file=sys.stderr)
    if args.watch:
        return _watch(args)
    path = output_file(args.output or (args.runs[0] / FILE_NAME if len(runs) == 1 else Path(FILE_NAME)))
    if args.pdf:
        from epo_lab.report.pdf import find_browser, print_page

        find_browser()
        pdf = output_file(path.with_suffix(".pdf"), "--pdf")
    write_report(runs, path, _metric(runs))
    print(f"Report: {path}")
    if args.pdf:
        print_page(path, pdf)
        print(f"PDF: {pdf}")
    return 0


def _watch(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from epo_lab.report.watch import make_server

    if args.output or args.pdf:
        raise UserError("--watch writes no file: leave out --output and --pdf")
    viewer.check_port(args.host, args.port)

    def page(script: str, live: str) -> str:
        runs = [read_run(folder) for folder in args.runs]
        return make_page(runs, _metric(runs), script, live)

    with make_server(args.runs, page, args.host, args.port) as server:
        print(f"Watch: {viewer.url(args.host, args.port)} (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def _metric(runs: list[RunRecord]) -> str | None:
    return next((tag for tag in METRICS if any(len(run.curve(tag)[1]) for run in runs)), None)
