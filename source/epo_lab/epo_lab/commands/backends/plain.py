"""Tasks that need no Isaac Lab, no size and no launcher: settings are plain dicts."""

from __future__ import annotations

import argparse
import copy
import random
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_text
from epo_lab.base.processes import own_device, rank
from epo_lab.configs.overrides import check_paths, read_value, split_overrides
from epo_lab.configs.plain import DEFAULT_AGENT
from epo_lab.configs.sizes import check_size
from epo_lab.runner.options import check_runner

from .base import RUN_OPTIONS, Backend, add_wandb_options, logger_settings


class PlainBackend(Backend):
    """A task whose ``env`` and ``agent`` settings are dicts."""

    shares_process = True
    env_settings: dict[str, Any]
    """Settings of the environments; the command line has been applied."""

    @abstractmethod
    def sections(self, agent: str, *, play_mode: bool) -> dict[str, Any]:
        """Return the ``env`` and ``agent`` settings before overrides; ``env`` has ``num_envs``."""

    @abstractmethod
    def make_env(self) -> Any:
        """Create the environments."""

    def resolve(self, args: argparse.Namespace, rest: list[str], config_dir: Path, *, play_mode: bool = False) -> None:
        """Resolve agent and overrides; the size does not matter here, because one fits every machine."""
        if args.profile is not None:
            check_size(args.profile)
        if getattr(args, "experiment", None) is not None:
            raise UserError(f"{self.spec.id} has no experiments: leave out --experiment")
        if args.viz:
            raise UserError(f"{self.spec.id} has nothing to look at: leave out --viz")
        self._agent = args.agent or DEFAULT_AGENT
        # a copy: defaults are shared by all tasks of a process
        sections = copy.deepcopy(self.sections(self._agent, play_mode=play_mode))
        presets, paths = split_overrides(rest)
        if presets:
            raise UserError(f"{presets[0]} does not fit {self.spec.id}: it has no physics engines to choose from")
        check_paths(paths, sections["env"], sections["agent"])
        for path in paths:
            _assign(sections, path)
        self.env_settings, self.settings = sections["env"], sections["agent"]
        for name in RUN_OPTIONS:
            if getattr(args, name, None) is not None:
                self.settings[name] = getattr(args, name)
        check_runner(self.settings)
        project = getattr(args, "log_project_name", None)
        if project is not None:
            self.settings["wandb_project"] = self.settings["neptune_project"] = project
        self.settings["logger"] = logger_settings(self.settings["logger"], self.settings)
        add_wandb_options(self.settings, args)
        self.num_envs = self.env_settings["num_envs"] if args.num_envs is None else args.num_envs
        self.device = self.settings["device"] = own_device(args.device or self.settings["device"])
        self.settings["seed"] += rank()
        self.check_size()

    @property
    def agent_key(self) -> str:
        """Name of the preset."""
        return self._agent

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Seed everything and create the environments."""
        import numpy as np
        import torch

        seed = self.settings["seed"]
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - others may draw from the global generator
        torch.manual_seed(seed)
        yield self.make_env()

    def dump(self, folder: Path) -> None:
        """Write the resolved settings into the run folder."""
        params = folder / "params"
        params.mkdir(parents=True, exist_ok=True)
        env = self.env_settings | {"num_envs": self.num_envs, "device": self.device}
        replace_text(params / "env.yaml", yaml.safe_dump(env, sort_keys=False))
        replace_text(params / "agent.yaml", yaml.safe_dump(self.settings, sort_keys=False))


def _assign(sections: dict[str, Any], override: str) -> None:
    """Set what ``section.a.b=value`` names; the path is known to exist."""
    *parents, last = override.partition("=")[0].split(".")
    node = sections
    for word in parents:
        node = node[word]
    node[last] = read_value(override)
