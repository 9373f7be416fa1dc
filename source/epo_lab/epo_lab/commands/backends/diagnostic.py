"""Our diagnostic environments, in torch."""

from __future__ import annotations

from typing import Any

from .plain import PlainBackend

PLAY_ENVS = 1024


class DiagnosticBackend(PlainBackend):
    """A vector of small problems in torch."""

    engine = "torch"

    def sections(self, agent: str, *, play_mode: bool) -> dict[str, Any]:
        """Return the settings of a diagnostic; more environments play than train."""
        from epo_lab.diagnostics.agents import agent_settings

        sections = agent_settings(self.spec.id, agent)
        if play_mode:
            sections["env"]["num_envs"] = PLAY_ENVS
        return sections

    def make_env(self) -> Any:
        """Create the environments."""
        import torch
        from rsl_rl.utils import resolve_callable

        if self.device == "cpu":
            # tensors this small lose time when threads share them
            torch.set_num_threads(1)
        return resolve_callable(self.spec.kwargs["diagnostic"])(self.num_envs, self.device, self.settings["seed"])

    def begin(self, env: Any, seed: int) -> None:
        """Seed the environments' generator and reset them."""
        import torch

        env.generator.manual_seed(seed)
        env.reset_envs(torch.ones(env.num_envs, dtype=torch.bool, device=self.device))
