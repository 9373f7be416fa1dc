"""Several values of a setting, in Hydra's notation: ``agent.x=1,2``, ``env.y=range(0,3)``, ``agent.z=choice(a,b)``."""

from __future__ import annotations

import itertools
import re

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from epo_lab.base.errors import UserError

SWEPT = re.compile(r"(env\.|agent\.|physics=).*")
"""What can be swept; ``presets=a,b`` names two presets at once."""


def expand(arguments: list[str]) -> list[tuple[str, list[str]]]:
    """Return all combinations of the settings as (name, arguments); one without a name if there is no setting.

    A setting with one value is named too: runs with and without it are not the same.

    Args:
        arguments: Settings and options, of which those with several values are swept.
    """
    swept: list[list[str]] = []
    fixed = []
    for argument in arguments:
        if SWEPT.match(argument):
            key = argument.partition("=")[0]
            swept.append([f"{key}={value}" for value in _values(argument)])
        else:
            fixed.append(argument)
    names = _short_names([options[0].partition("=")[0] for options in swept])
    points = []
    for combination in itertools.product(*swept):
        values = [token.partition("=")[2] for token in combination]
        name = ",".join(f"{key}={value}" for key, value in zip(names, values, strict=True))
        points.append((name, [*fixed, *combination]))
    return points


def _values(argument: str) -> list[str]:
    """Return the value of a setting, or all that are swept."""
    try:
        override = OverridesParser.create().parse_override(argument)
        return list(override.sweep_string_iterator()) if override.is_sweep_override() else [argument.partition("=")[2]]
    except HydraException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"cannot read '{argument}' ({reason}): give values as a,b or range(start,stop,step)") from None


def _short_names(keys: list[str]) -> list[str]:
    """Return the last words of the settings' paths, or the whole paths if two end alike."""
    last = [key.rpartition(".")[2] for key in keys]
    return last if len(set(last)) == len(last) else keys
