"""The command ``epo-lab evaluate`` of a checkout: ./isaaclab.sh -p scripts/evaluate.py --help says what it does."""

import sys

try:
    from epo_lab.cli.evaluate import main, make_parser  # noqa: F401
except ModuleNotFoundError as error:
    start = "start it with ./isaaclab.sh -p scripts/evaluate.py"
    print(f"evaluate: {sys.executable} has no module '{error.name}': {start}", file=sys.stderr)
    raise SystemExit(2) from None

if __name__ == "__main__":
    sys.exit(main())
