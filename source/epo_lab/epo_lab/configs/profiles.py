"""Profiles (how large: cpu, gpu, paper) and experiments (one file a result we claim), composed with Hydra.

The files in ``config/`` become overrides that come before the user's own, so what is typed wins. For a profile these
are ``profile/<name>.yaml`` and ``task/<family>/<name>.yaml`` for every family of the task that has such a file:
``Epo-Kuka``, then ``Epo-Kuka-TwoArm``, and so on to the full name of the task, which wins; then in the same way
``agent/<family>/<name>.yaml`` for the agent: ``epo``, then ``epo_paper``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from epo_lab.base.errors import UserError, did_you_mean

SECTIONS = ("env", "agent")


def profile_names(config_dir: Path) -> list[str]:
    """Return the names of the profiles."""
    return sorted(path.stem for path in (config_dir / "profile").glob("*.yaml"))


def default_profile() -> str:
    """Return ``gpu`` if torch can use CUDA, else ``cpu``."""
    from epo_lab.base.device import default_device

    return "cpu" if default_device() == "cpu" else "gpu"


def profile_overrides(
    config_dir: Path, profile: str, task: str, experiment: str | None = None, agent: str = ""
) -> list[str]:
    """Return the overrides of a profile for a task and an agent, and those of an experiment on top.

    Args:
        config_dir: The ``config/`` folder.
        profile: Name of the profile.
        task: Id of the task.
        experiment: Name of a file in ``config/experiment``. Defaults to None.
        agent: Name of the agent's preset.
    """
    _check(config_dir, "profile", profile)
    choices = [f"+profile={profile}"]
    for group, name, separator in (("task", task, "-"), ("agent", agent, "_")):
        words = name.split(separator)
        families = [separator.join(words[: count + 1]) for count in range(len(words))]
        files = [f"{family}/{profile}" for family in families]
        files = [file for file in files if (config_dir / group / f"{file}.yaml").is_file()]
        if files:
            choices.append(f"+{group}=[{','.join(files)}]")
    if experiment is not None:
        _check(config_dir, "experiment", experiment)
        choices.append(f"+experiment={experiment}")
    with initialize_config_dir(str(config_dir.resolve()), version_base="1.3"):
        composed = compose("base", choices)
    sections = {section: OmegaConf.to_container(composed[section], resolve=True) for section in SECTIONS}
    return [token for section, values in sections.items() for token in _flatten(section, values)]


def _check(config_dir: Path, group: str, name: str) -> None:
    choices = sorted(path.stem for path in (config_dir / group).glob("*.yaml"))
    if name not in choices:
        hint = did_you_mean(name, choices) or f" There are: {', '.join(choices)}."
        raise UserError(f"unknown {group} '{name}'.{hint}")


def _flatten(prefix: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _flatten(f"{prefix}.{key}", child)
    else:
        yield f"{prefix}={'null' if value is None else value}"
