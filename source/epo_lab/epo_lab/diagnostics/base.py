"""What the diagnostic environments share: vectors of small problems in pure torch, with known optima.

Every episode has a score that is 1 for an optimal policy. All state is in a few tensors and one generator, so that a
run can be resumed to the last bit.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.base.keys import FINAL_OBS


@dataclass
class DiagnosticCfg:
    """What a diagnostic was made with; loggers keep it beside the agent's settings."""

    num_envs: int
    seed: int
    device: str


class DiagnosticEnv(VecEnv):
    """A vector of problems with a fixed horizon; its end is terminal if a problem does not say else."""

    num_actions: int
    horizon: int
    """Length of an episode [steps]."""

    def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        """Create the environments.

        Args:
            num_envs: Number of environments.
            device: Where their state lives.
            seed: Seed of everything they draw.
        """
        self.num_envs, self.device = num_envs, device
        self.max_episode_length = self.horizon
        self.cfg = DiagnosticCfg(num_envs, seed, device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=device)
        self.state = self.draw_state()
        """Tensors that describe every environment, by name; the first dimension is the environment."""
        self._return = torch.zeros(num_envs, device=device)

    @abstractmethod
    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return first states for all environments."""

    @abstractmethod
    def observe(self) -> torch.Tensor:
        """Return the observations. Shape is (num_envs, obs_dim)."""

    @abstractmethod
    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Apply actions within [-1, 1] to :attr:`state` and return the rewards. Shape is (num_envs,)."""

    @abstractmethod
    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the scores of finished episodes: 1 for an optimal policy on average."""

    def ended(self) -> torch.Tensor:
        """Return which episodes end with this step: those that have reached the horizon. Shape is (num_envs,)."""
        return self.episode_length_buf >= self.horizon

    @property
    def time(self) -> torch.Tensor:
        """Share of the episode that has passed. Shape is (num_envs, 1)."""
        return self.episode_length_buf.unsqueeze(-1) / self.horizon

    def get_observations(self) -> TensorDict:
        """Return the current observations."""
        return TensorDict({"policy": self.observe()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Apply actions to all environments; those that end begin anew."""
        rewards = self.advance(actions.clamp(-1.0, 1.0))
        self.episode_length_buf += 1
        self._return += rewards
        dones = self.ended()
        scores = self.score(self._return)
        extras: dict[str, Any] = {"score": scores}
        if bool(dones.any()):
            extras["log"] = {"Metrics/score": scores[dones].mean()}
            extras[FINAL_OBS] = self.get_observations()
            self.reset_envs(dones)
        return self.get_observations(), rewards, dones.long(), extras

    def reset_envs(self, mask: torch.Tensor) -> None:
        """Begin new episodes where ``mask`` is true."""
        self.state = choose(mask, self.draw_state(), self.state)
        self.episode_length_buf = torch.where(mask, 0, self.episode_length_buf)
        self._return = torch.where(mask, 0.0, self._return)

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {
            "state": {name: value.clone() for name, value in self.state.items()},
            "episode_length": self.episode_length_buf.clone(),
            "return": self._return.clone(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> bool:
        """Restore what :meth:`state_dict` returned; True says that every episode goes on where it was."""
        if len(state["return"]) != self.num_envs:
            return False
        self.state = {name: value.to(self.device) for name, value in state["state"].items()}
        self.episode_length_buf = state["episode_length"].to(self.device)
        self._return = state["return"].to(self.device)
        self.generator.set_state(state["generator"].cpu())
        return True

    def normal(self, *shape: int) -> torch.Tensor:
        """Return standard normal numbers."""
        return torch.randn(*shape, generator=self.generator, device=self.device)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Return uniform numbers in [0, 1)."""
        return torch.rand(*shape, generator=self.generator, device=self.device)


def choose(mask: torch.Tensor, new: dict[str, torch.Tensor], old: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the new state of environments where ``mask`` is true, and the old one elsewhere."""
    return {name: torch.where(mask.view(-1, *[1] * (old[name].dim() - 1)), new[name], old[name]) for name in old}
