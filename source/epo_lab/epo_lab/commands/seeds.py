"""Seeds on the command line."""

from __future__ import annotations

from epo_lab.base.errors import UserError


def read_seeds(text: str) -> list[int]:
    """Return the seeds of ``10`` (0 to 9) or ``3,5,7``."""
    try:
        numbers = [int(word) for word in text.split(",") if word]
    except ValueError:
        numbers = []
    seeds = numbers if "," in text else list(range(sum(numbers)))
    if not seeds:
        raise UserError(f"--seeds {text}: give a number of seeds, or a list such as 0,1,2")
    return seeds
