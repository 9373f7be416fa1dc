"""How environments explore: noise that is repeated (SAC), or of another size in every environment (TD3, PQL)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

MOST_REPEATS = 16
"""Longest time for which noise is repeated [control steps]."""


class RepeatedNoise:
    """Standard normal numbers, each of which an environment keeps for k steps, k ~ Zeta(2)."""

    def __init__(self, num_envs: int, num_actions: int, generator: torch.Generator, *, repeat: bool) -> None:
        """Create the noise.

        Args:
            num_envs: Number of environments.
            num_actions: Number of actions.
            generator: Where it is drawn from.
            repeat: Whether it is repeated at all.
        """
        device = generator.device
        self._generator, self._repeat = generator, repeat
        self._noise = torch.zeros(num_envs, num_actions, device=device)
        self._left = torch.zeros(num_envs, dtype=torch.long, device=device)
        # Zeta(2): P(k) ~ 1 / k^2, up to the most repeats
        chances = 1.0 / torch.arange(1, MOST_REPEATS + 1, dtype=torch.float64).square()
        self._cumulative = (chances / chances.sum()).cumsum(0).float().to(device)

    def draw(self) -> torch.Tensor:
        """Return the numbers of the next step. Shape is (num_envs, num_actions)."""
        fresh = torch.randn(self._noise.shape, generator=self._generator, device=self._noise.device)
        if not self._repeat:
            return fresh
        # Where the last number is used up: a new one, and how long it lasts, by the inverse of the cumulative chances
        chance = torch.rand(self._left.shape, generator=self._generator, device=self._noise.device)
        length = torch.searchsorted(self._cumulative, chance).clamp(max=MOST_REPEATS - 1) + 1
        over = self._left <= 0
        self._noise.copy_(torch.where(over.unsqueeze(1), fresh, self._noise))
        self._left.copy_(torch.where(over, length, self._left) - 1)
        return self._noise.clone()

    def end_episodes(self, dones: torch.Tensor) -> None:
        """Draw anew where an episode ended."""
        self._left.masked_fill_(dones.bool(), 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the noise that is being repeated."""
        return {"noise": self._noise.clone(), "left": self._left.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._noise.copy_(state["noise"])
        self._left.copy_(state["left"])


def _random(low: float, high: float, count: int, generator: torch.Generator) -> torch.Tensor:
    return low + (high - low) * torch.rand(count, generator=generator, device=generator.device)


def _linear(low: float, high: float, count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.linspace(low, high, count, device=generator.device)


SPREADS: dict[str, Callable[[float, float, int, torch.Generator], torch.Tensor]] = {
    "random": _random,
    "linear": _linear,
}
"""How standard deviations are spread over the environments, by name."""


class SpreadNoise:
    """Gaussian noise with a standard deviation of its own in every environment."""

    def __init__(
        self,
        num_envs: int,
        num_actions: int,
        generator: torch.Generator,
        *,
        std_min: float,
        std_max: float,
        spread: str,
    ) -> None:
        """Create the noise.

        Args:
            num_envs: Number of environments.
            num_actions: Number of actions.
            generator: Where it is drawn from.
            std_min: Least standard deviation.
            std_max: Largest one.
            spread: A name of :data:`SPREADS`.
        """
        self._generator, self._num_actions = generator, num_actions
        self._range, self._spread = (std_min, std_max, num_envs), SPREADS[spread]
        self.std = self._spread(*self._range, generator).unsqueeze(1)
        """Standard deviation of every environment. Shape is (num_envs, 1)."""

    def draw(self) -> torch.Tensor:
        """Return the noise of the next step. Shape is (num_envs, num_actions)."""
        shape = (len(self.std), self._num_actions)
        return self.std * torch.randn(shape, generator=self._generator, device=self.std.device)

    def end_episodes(self, dones: torch.Tensor) -> None:
        """Spread anew where an episode ended."""
        fresh = self._spread(*self._range, self._generator).unsqueeze(1)
        self.std.copy_(torch.where(dones.bool().unsqueeze(1), fresh, self.std))

    def state_dict(self) -> dict[str, Any]:
        """Return the standard deviations."""
        return {"std": self.std.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.std.copy_(state["std"])
