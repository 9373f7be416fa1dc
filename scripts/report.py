"""The command ``epo-lab report`` of a checkout: ./isaaclab.sh -p scripts/report.py --help says what it does."""

import sys

try:
    from epo_lab.cli.report import main, make_parser  # noqa: F401
except ModuleNotFoundError as error:
    start = "start it with ./isaaclab.sh -p scripts/report.py"
    print(f"report: {sys.executable} has no module '{error.name}': {start}", file=sys.stderr)
    raise SystemExit(2) from None

if __name__ == "__main__":
    sys.exit(main())
