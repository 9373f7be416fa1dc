"""rsl_rl's own algorithms behind our contract."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict

from epo_lab.base.clock import Clock
from epo_lab.models.hidden import HiddenStates

from .base import Algorithm, Part, load_parts, part_states


class StockAlgorithm(Algorithm):
    """An algorithm that knows rsl_rl's interface only; it has one policy and nothing evolves."""

    def __init__(self, inner: Any, num_steps: int) -> None:
        """Wrap the algorithm.

        Args:
            inner: rsl_rl's algorithm.
            num_steps: Control steps of a roll-out.
        """
        self.inner = inner
        self.clock = Clock()
        self.rnd = inner.rnd
        self._num_steps = num_steps

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        """Learning rate."""
        return self.inner.learning_rate

    @property
    def intrinsic_rewards(self) -> torch.Tensor:
        """Rewards of rsl_rl's random network distillation."""
        return self.inner.intrinsic_rewards

    @property
    def actor(self) -> Any:
        """The actor."""
        return self.inner.actor

    @property
    def critic(self) -> Any:
        """The critic."""
        return self.inner.critic

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Return an action for every environment."""
        return self.inner.act(obs)

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Take in one step."""
        self.inner.process_env_step(obs, rewards, dones, extras)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute targets and advantages."""
        self.inner.compute_returns(obs)

    def train_mode(self) -> None:
        """Prepare for training."""
        self.inner.train_mode()

    def eval_mode(self) -> None:
        """Prepare for playing."""
        self.inner.eval_mode()

    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's parameters."""
        self.inner.broadcast_parameters()

    def learn(self) -> dict[str, float]:
        """Learn from the roll-out."""
        self.clock.iterations += 1
        self.clock.steps += self._num_steps
        return self.inner.update()

    def policy(self, member: int = 0) -> Any:
        """Return the actor."""
        return self.inner.get_policy()

    def memory(self) -> dict[str, list[Any]]:
        """Return networks, optimizer and roll-out."""
        inner = self.inner
        return {"networks": [inner.actor, inner.critic], "optimizer": [inner.optimizer], "storage": [inner.storage]}

    def parts(self) -> dict[str, Part]:
        """Return the clock and the recurrent states."""
        hidden = HiddenStates([self.inner.actor, self.inner.critic])
        return {"clock": Part(self.clock), "hidden": Part(hidden, per_env=True)}

    def save(self) -> dict[str, Any]:
        """Return models and parts."""
        return self.inner.save() | {"parts": part_states(self.parts())}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load models and, if everything is asked for, parts."""
        loaded = self.inner.load(loaded_dict, load_cfg, strict)
        if load_cfg is None:
            load_parts(self.parts(), loaded_dict.get("parts", {}))
        return loaded

    def interrupt(self, *, forget: bool) -> None:
        """Forget the recurrent states."""
        HiddenStates([self.inner.actor, self.inner.critic]).forget()
