"""Check overrides before they are applied: Isaac Lab sets a misspelt last word, or a word for a number, silently."""

from __future__ import annotations

import difflib
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from epo_lab.base.errors import UserError, did_you_mean

from .sizes import SIZES

FREE_GROUPS = ("agent.obs_groups", "agent.algorithm.pbt.mutated")
"""Groups whose names are the user's to choose."""
PRESET_TOKENS = ("physics", "renderer", "presets")


def split_overrides(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return (preset selectors, path overrides); anything that is neither is refused."""
    presets, paths = [], []
    for argument in arguments:
        key, separator, _ = argument.partition("=")
        if argument.startswith("-") or not separator:
            raise UserError(f"unknown argument '{argument}': see --help; settings are given as env.x=1 or agent.y=2")
        if key in PRESET_TOKENS:
            presets.append(argument)
        elif key.partition(".")[0] in ("env", "agent") and "." in key:
            paths.append(argument)
        else:
            known = [*PRESET_TOKENS, "env.", "agent."]
            raise UserError(f"unknown setting '{key}': it must begin with one of {', '.join(known)}")
    return presets, paths


def check_paths(paths: list[str], env_cfg: Any, agent_cfg: Any) -> None:
    """Raise a :class:`UserError` if an override names what the configs do not have, or has a value of another kind."""
    sections = {"env": env_cfg, "agent": agent_cfg}
    for token in paths:
        words = token.partition("=")[0].split(".")
        node: Any = sections[words[0]]
        for depth, word in enumerate(words[1:], start=1):
            names = _names(node)
            if word not in names:
                where = ".".join(words[:depth])
                hint = did_you_mean(word, names) or _deeper(word, node, where)
                hint = hint or f" It has: {', '.join(sorted(names)[:12])}."
                raise UserError(f"unknown setting '{'.'.join(words)}': {where} has no '{word}'.{hint}")
            parent, node = node, node[word] if isinstance(node, Mapping) else getattr(node, word)
        _check_group(token, node)
        _check_value(token, _kinds(parent, words[-1], node))


def _check_group(token: str, node: Any) -> None:
    """Raise a :class:`UserError` if a whole group of settings with names of its own is to be replaced."""
    if not isinstance(node, Mapping) or not node:
        return
    if isinstance(read_value(token), Mapping) and token.partition("=")[0] in FREE_GROUPS:
        return
    path = token.partition("=")[0]
    raise UserError(f"{path} is a group of settings: set one of them, such as {path}.{next(iter(node))}")


def _check_value(token: str, kinds: set[type]) -> None:
    """Raise a :class:`UserError` if a value is of none of these kinds; of no kind, nothing is known."""
    value = read_value(token)
    if not kinds or value is None or value in SIZES:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = number and (isinstance(value, int) or value.is_integer())
    fits = {bool: isinstance(value, bool), float: number, int: whole, str: True}
    if not any(fits[kind] for kind in kinds):
        names = " or ".join(_WORDS[kind] for kind in (int, float, bool, str) if kind in kinds)
        raise UserError(f"'{token}': {token.partition('=')[0]} takes {names}")


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def _kinds(parent: Any, name: str, value: Any) -> set[Any]:
    """Return which plain kinds a setting may be: as its config declares it, else as its value is now."""
    try:
        hint = None if isinstance(parent, Mapping) else get_type_hints(type(parent)).get(name)
    except (NameError, TypeError):  # a config may name types that only its type checker knows
        hint = None
    declared = set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}
    declared.discard(type(None))
    if declared and declared <= _WORDS.keys():
        return declared
    # a whole number in a file may stand for any: what is 1 there can be 0.5
    kind = float if type(value) is int else type(value)
    return {kind} if hint is None and kind in _WORDS else set()


def read_value(override: str) -> Any:
    """Return the value of ``key=value``, read as Hydra reads it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(override).value()
    except HydraException as error:
        raise UserError(f"cannot read '{override}' ({str(error).splitlines()[0]})") from None


def _names(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        return [str(key) for key in node]
    return [name for name in getattr(node, "__dict__", {}) if not name.startswith("_")]


def _deeper(word: str, node: Any, where: str) -> str:
    """Return a hint if a group below has a name like this one."""
    groups = {name: node[name] if isinstance(node, Mapping) else getattr(node, name) for name in _names(node)}
    homes = {name: f"{where}.{group}.{name}" for group, below in groups.items() for name in _names(below)}
    near = difflib.get_close_matches(word, homes, n=1)
    return f" Did you mean {homes[near[0]]}?" if near else ""
