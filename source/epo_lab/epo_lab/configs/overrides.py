"""Check overrides before they are applied: Isaac Lab sets a misspelt last word of a path without a word."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from epo_lab.base.errors import UserError, did_you_mean

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
    """Raise a :class:`UserError` if an override names something that the configs do not have."""
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
            node = node[word] if isinstance(node, Mapping) else getattr(node, word)


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
