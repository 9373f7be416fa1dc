"""A diagnostic that draws nothing, on which a divided population can be compared with a whole one."""

from __future__ import annotations

from typing import Any

import torch

from epo_lab.base.options import merge
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.runner.runner import EpoRunner


class FixedStart(SmoothEnv):
    """All episodes begin alike, so that it does not matter which environments a member has."""

    horizon = 10

    def draw_state(self) -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([0.5, -0.4, 0.3, 0.2], device=self.device).repeat(self.num_envs, 1)}


def make_runner(agent: str, rank: int, num_envs: int, folder: str | None = None, **changes: Any) -> EpoRunner:
    """Return a runner of a preset on this problem; an iteration is a step that ends what ran, and an episode."""
    settings = agent_settings("Epo-Diag-Smooth-v0", agent)["agent"]
    settings |= {"seed": 5 + rank, "num_steps_per_env": FixedStart.horizon + 1, "save_interval": 4}
    # random first weights are others in every process, until the first one's go to all
    torch.manual_seed(100 * rank)
    return EpoRunner(FixedStart(num_envs, seed=rank), merge(settings, changes), log_dir=folder)
