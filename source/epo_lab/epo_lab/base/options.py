"""Options as dataclasses: built from nested settings, every value typed and ranged, with one line for what is wrong.

A field says what it may be: ``gamma: Annotated[float, AtLeast(0)] = 0.3``. Nested dataclasses are groups of options, so
that ``agent.algorithm.evolution.gamma`` has one home.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from .errors import UserError, did_you_mean

ROOT = "agent.algorithm"
"""Where the options of an algorithm stand on the command line."""


@dataclass(frozen=True)
class Rule:
    """What a value must be, beyond its type."""

    holds: Callable[[Any], bool]
    text: str


def at_least(low: float) -> Rule:
    """Return a rule: finite, and not below a number."""
    return Rule(lambda value: low <= value < math.inf, f"at least {low:g}")


def between(low: float, high: float) -> Rule:
    """Return a rule: from one number to another."""
    return Rule(lambda value: low <= value <= high, f"between {low:g} and {high:g}")


def one_of(names: Iterable[str]) -> Rule:
    """Return a rule: one of some names."""
    known = tuple(names)
    return Rule(lambda value: value in known, f"one of {', '.join(known)}")


POSITIVE = Rule(lambda value: 0 < value < math.inf, "positive and finite")
FILLED = Rule(bool, "a list that is not empty")
SHARE = Rule(lambda value: 0 < value <= 1, "above 0 and at most 1")

MOST = 2**31 - 1
"""Largest whole number of a setting, unless it has a check of its own."""

_AT_MOST = Rule(lambda value: value <= MOST, f"at most {MOST}")

Whole = Annotated[int, at_least(1), _AT_MOST]
Count = Annotated[int, at_least(0), _AT_MOST]
Weight = Annotated[float, at_least(0)]
Positive = Annotated[float, POSITIVE]


def build(kind: type, values: Mapping[str, Any], path: str = ROOT) -> Any:
    """Return a dataclass of options from nested settings.

    Args:
        kind: The dataclass.
        values: Its values by name; what is not named keeps its default.
        path: Where these stand, for the message.

    Raises:
        UserError: If a name is unknown, or a value is of another type or out of its range.
    """
    hints = _hints(kind)
    for name in values:
        if name not in hints:
            raise UserError(f"unknown setting '{path}.{name}'.{did_you_mean(name, list(hints))}")
    return kind(**{name: _value(hints[name], value, f"{path}.{name}") for name, value in values.items()})


def split(kind: type, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings that are options of a dataclass, and the others."""
    hints = _hints(kind)
    own = {name: value for name, value in settings.items() if name in hints}
    return own, {name: value for name, value in settings.items() if name not in hints}


def without_class(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an algorithm without its name."""
    return {name: value for name, value in settings.items() if name != "class_name"}


def merge(base: Mapping[str, Any], *changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with changes laid over them; groups are merged, everything else is replaced."""
    merged = dict(base)
    for change in changes:
        for name, value in change.items():
            old: Any = merged.get(name)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            merged[name] = merge(old, value) if both else value
    return merged


def assign(node: Any, changes: Mapping[str, Any]) -> None:
    """Set nested attributes of an object; a mapping changes a group, unless the attribute is a mapping itself."""
    for name, value in changes.items():
        old = getattr(node, name)
        if isinstance(value, Mapping) and not isinstance(old, Mapping) and old is not None:
            assign(old, value)
        else:
            setattr(node, name, value)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def _value(hint: Any, value: Any, path: str, *, ruled: bool = False) -> Any:
    """Return a value as its type, or refuse it; a number without a rule of its own must be finite."""
    if get_origin(hint) is Annotated:
        plain, *rules = get_args(hint)
        value = _value(plain, value, path, ruled=True)
        for rule in rules:
            if value is not None and not rule.holds(value):
                raise UserError(f"{path} must be {rule.text}, not {value}")
        return value
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        if value is None and len(kinds) < len(get_args(hint)):
            return None
        return _value(kinds[0], value, path, ruled=ruled)
    if is_dataclass(hint):
        return _group(hint, value, path) if not is_dataclass(value) else value
    if get_origin(hint) is dict and isinstance(value, Mapping):
        return {name: _value(get_args(hint)[1], item, f"{path}.{name}") for name, item in value.items()}
    if get_origin(hint) is tuple:
        return _sequence(get_args(hint)[0], value, path)
    value = _plain(get_origin(hint) or hint, value, path)
    if not ruled and isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path} must be finite, not {value}")
    return value


def _group(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, Mapping):
        raise UserError(f"{path} is a group of settings: set one of them, such as {path}.{fields(kind)[0].name}")
    return build(kind, value, path)


def _sequence(kind: Any, value: Any, path: str) -> tuple[Any, ...]:
    if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        raise UserError(f"{path} takes a list, such as [1,2], not {value}")
    return tuple(_value(kind, item, path) for item in value)


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", dict: "a mapping"}


def _plain(kind: Any, value: Any, path: str) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and abs(value) > sys.float_info.max and not isinstance(value, float):
        raise UserError(f"{path} must be below 1e308")
    fits = {int: number and float(value).is_integer() if number else False, float: number and not math.isnan(value)}
    if not fits.get(kind, isinstance(value, kind)):
        raise UserError(f"{path} takes {_WORDS.get(kind, kind.__name__)}, not {value}")
    return kind(value) if kind in (int, float) else value
