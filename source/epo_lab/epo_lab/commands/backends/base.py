"""Where an environment comes from: Isaac Lab, EnvPool, or our own diagnostics."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec

from epo_lab.base.device import check_device
from epo_lab.base.errors import UserError
from epo_lab.base.options import MOST
from epo_lab.base.processes import launched_world_size

RUN_OPTIONS = ("max_iterations", "seed", "experiment_name", "run_name", "logger")
"""Options of the command line that are settings of the runner by the same name."""


class Backend(ABC):
    """A task with its agent: resolved first, which finds everything that is wrong with the input, then opened."""

    settings: dict[str, Any]
    """The agent's settings, as rsl_rl's runner takes them."""
    num_envs: int
    device: str
    """Device of the environments."""
    engine: str
    """What the environments run on, in a word."""
    size_note: str = ""
    """What the size of the run changes that is not a matter of size."""
    shares_process = False
    """Whether tasks can be opened one after the other in one process."""

    def __init__(self, spec: EnvSpec) -> None:
        """Create the backend of a task."""
        self.spec = spec

    @abstractmethod
    def resolve(self, args: argparse.Namespace, rest: list[str], config_dir: Path, *, play_mode: bool = False) -> None:
        """Resolve the configs.

        Args:
            args: Options of the script.
            rest: What the script did not understand: launcher options, presets and overrides.
            config_dir: The ``config/`` folder.
            play_mode: Whether to apply the task's changes for playing.
        """

    @abstractmethod
    def open(self) -> AbstractContextManager[Any]:
        """Create the environment as rsl_rl wants it, and close it in the end."""

    @abstractmethod
    def begin(self, env: Any, seed: int) -> None:
        """Begin new episodes in all environments of an open task, from a seed."""

    @abstractmethod
    def dump(self, folder: Path) -> None:
        """Write the resolved configs into the run folder."""

    @property
    def starting(self) -> str:
        """What goes on while the environment is created, and how long that usually takes if it is no moment."""
        return "Starting the environments"

    @property
    @abstractmethod
    def agent_key(self) -> str:
        """Name of the agent in the manifest of a run."""

    @property
    def agent_name(self) -> str:
        """Name of the agent as users call it."""
        return self.agent_key.removeprefix("rsl_rl_").removesuffix("cfg_entry_point").rstrip("_") or "default"

    def add_camera(self, view: str | None) -> None:
        """Prepare for filming; called before :meth:`open`."""
        raise UserError(f"{self.spec.id} has nothing to film: leave out --video")

    @property
    def note(self) -> str:
        """What a score must be read with, because settings make the task another one."""
        return ""

    def resize(self, num_envs: int) -> None:
        """Change the number of environments; called before :meth:`open`."""
        self.num_envs = num_envs

    @property
    def num_agents(self) -> int:
        """Number of agents that a training run has."""
        from epo_lab.algorithms import registry

        algorithm = self.settings["algorithm"]
        return registry.find(algorithm).num_agents(algorithm, self.num_envs)

    def check_training(self) -> None:
        """Raise a :class:`UserError` if a setting of the training is wrong or the agents cannot share the envs."""
        from epo_lab.algorithms import registry

        check_login(self.settings["logger"])
        registry.find(self.settings["algorithm"]).check(self.settings, self.num_envs, launched_world_size())

    def check_size(self) -> None:
        """Raise a :class:`UserError` if there is no environment or no such device."""
        if not isinstance(self.num_envs, int) or not 1 <= self.num_envs <= MOST:
            raise UserError(f"--num_envs {str(self.num_envs)[:40]}: a number from 1 to {MOST} is needed")
        check_device(self.device)


def check_login(logger: Any) -> None:
    """Raise a :class:`UserError` if W&B is asked for and nobody is logged in."""
    if not isinstance(logger, dict) or logger["class_name"] != WANDB:
        return
    import wandb

    mode = logger.get("mode") or wandb.Settings().mode
    if mode == "online" and not wandb.login(prompt=False):
        raise UserError("W&B has no login: run 'wandb login', set WANDB_API_KEY, or add --wandb_mode offline")


BACKENDS = {
    "diagnostic": "epo_lab.commands.backends.diagnostic:DiagnosticBackend",
    "envpool": "epo_lab.commands.backends.envpool:EnvPoolBackend",
    "env_cfg_entry_point": "epo_lab.commands.backends.isaac:IsaacBackend",
}
"""Backend by the key that a task's registration has."""


def make_backend(spec: EnvSpec) -> Backend:
    """Return the backend of a registered task."""
    module, _, name = next(path for key, path in BACKENDS.items() if key in spec.kwargs).partition(":")
    return getattr(import_module(module), name)(spec)


LOGGERS = ("tensorboard", "wandb", "neptune")
WANDB = "epo_lab.runner.wandb_writer:WandbWriter"
"""Class of the W&B logger."""


def logger_settings(name: str, settings: dict[str, Any]) -> Any:
    """Return a logger's name as rsl_rl wants it."""
    if name not in LOGGERS:
        raise UserError(f"agent.logger must be one of {', '.join(LOGGERS)}, not {name}")
    classes = {"wandb": WANDB, "neptune": "NeptuneLogWriter"}
    return {"class_name": classes[name], "project_name": settings[f"{name}_project"]} if name in classes else name


def add_wandb_options(settings: dict[str, Any], args: argparse.Namespace) -> None:
    """Hand W&B's options of the command line to its logger."""
    values = {name: getattr(args, f"wandb_{name}", None) for name in ("entity", "group", "tags", "mode")}
    values = {name: value for name, value in values.items() if value is not None}
    logger = settings["logger"]
    if values and (not isinstance(logger, dict) or logger["class_name"] != WANDB):
        raise UserError(f"--wandb_{next(iter(values))} needs --logger wandb")
    if "tags" in values:
        values["tags"] = values["tags"].split(",")
    if values:
        logger |= values
