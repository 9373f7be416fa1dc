"""(d) A cue that is shown once and asked for later: a policy without memory can only guess."""

from __future__ import annotations

import torch

from .base import DiagnosticEnv


class MemoryEnv(DiagnosticEnv):
    """The first observation shows a sign; the action of the last step must have it."""

    num_actions = 1
    horizon = 8

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return random signs."""
        return {"cue": torch.where(self.uniform(self.num_envs, 1) < 0.5, -1.0, 1.0)}

    def observe(self) -> torch.Tensor:
        """Return the cue (zero after the first step) and whether it is asked for now."""
        first = self.episode_length_buf.unsqueeze(-1) == 0
        asked = (self.episode_length_buf.unsqueeze(-1) == self.horizon - 1).float()
        return torch.cat([torch.where(first, self.state["cue"], 0.0), asked], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Pay for the answer in the last step."""
        asked = self.episode_length_buf == self.horizon - 1
        return torch.where(asked, (actions * self.state["cue"]).squeeze(-1), 0.0)

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the answer itself: 1 is right and sure, 0 is a guess."""
        return returns
