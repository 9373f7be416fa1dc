"""Tasks of EnvPool, on the processor's cores."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.base.processes import own_cores

from .plain import PlainBackend

PLAY_ENVS = 16


class EnvPoolBackend(PlainBackend):
    """A vector of one of EnvPool's tasks; its options are the ``env`` settings."""

    engine = "EnvPool"

    def sections(self, agent: str, *, play_mode: bool) -> dict[str, Any]:
        """Return the settings of the agent, and the task's own options with EnvPool's values."""
        from epo_lab.envpool.agents import agent_settings
        from epo_lab.envpool.tasks import read_task

        self._defaults = read_task(self.spec.kwargs["envpool"]).options
        sections = agent_settings(self.spec.id, agent)
        sections["env"] |= self._defaults
        if play_mode:
            sections["env"]["num_envs"] = PLAY_ENVS
        return sections

    def resolve(self, args: argparse.Namespace, rest: list[str], config_dir: Path, *, play_mode: bool = False) -> None:
        """Resolve agent and overrides; what EnvPool does not take is found here."""
        from epo_lab.envpool.tasks import read_task

        super().resolve(args, rest, config_dir, play_mode=play_mode)
        if self.env_settings["num_threads"] < 0:
            raise UserError(
                f"env.num_threads must be at least 1, or 0 for all cores, not {self.env_settings['num_threads']}"
            )
        read_task(self.spec.kwargs["envpool"], self._changed)

    @property
    def _changed(self) -> dict[str, Any]:
        """Options of the task that are not EnvPool's."""
        return {name: self.env_settings[name] for name, old in self._defaults.items() if self.env_settings[name] != old}

    @property
    def note(self) -> str:
        """Which options make the task another one."""
        return ", ".join(f"{name} {value} instead of {self._defaults[name]}" for name, value in self._changed.items())

    def make_env(self) -> Any:
        """Create the environments; every core has a thread."""
        from epo_lab.envpool.env import EnvPoolCfg, EnvPoolEnv

        threads = self.env_settings["num_threads"] or own_cores()
        return EnvPoolEnv(
            EnvPoolCfg(
                name=self.spec.kwargs["envpool"],
                num_envs=self.num_envs,
                seed=self.settings["seed"],
                device=self.device,
                num_threads=min(threads, self.num_envs),
                options=self._changed,
            )
        )

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Seed everything, create the environments, and end their threads afterwards."""
        with super().open() as env:
            try:
                yield env
            finally:
                env.close()

    def begin(self, env: Any, seed: int) -> None:
        """Make the environments anew from a seed."""
        env.begin(seed)

    def add_camera(self, view: str | None) -> None:
        """Refuse: EnvPool draws its tasks with an OpenGL of its own, which servers do not have."""
        raise UserError(f"{self.spec.id} cannot be filmed: leave out --video")
