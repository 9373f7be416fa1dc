"""The command ``epo-lab export`` of a checkout: ./isaaclab.sh -p scripts/export.py --help says what it does."""

import sys

try:
    from epo_lab.cli.export import main, make_parser  # noqa: F401
except ModuleNotFoundError as error:
    start = "start it with ./isaaclab.sh -p scripts/export.py"
    print(f"export: {sys.executable} has no module '{error.name}': {start}", file=sys.stderr)
    raise SystemExit(2) from None

if __name__ == "__main__":
    sys.exit(main())
