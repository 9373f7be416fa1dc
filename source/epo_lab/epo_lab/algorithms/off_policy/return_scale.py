"""A running scale of the return, by which rewards are divided so that one support of values fits every task."""

from __future__ import annotations

from typing import Any

import torch

from epo_lab.base.processes import max_over_processes, sum_over_processes

EPSILON = 1e-8


class ReturnScale:
    """Scale max(std G, max |G| / value range) of the discounted return G (FlashSAC, section 4).

    Sums are kept on the device while an iteration lasts; :meth:`merge` joins those of all processes at its end.
    """

    def __init__(self, num_envs: int, gamma: float, value_range: float, device: str | torch.device) -> None:
        """Create the scale.

        Args:
            num_envs: Number of environments.
            gamma: Discount factor.
            value_range: Largest return after scaling.
            device: Where it is computed.
        """
        self._gamma, self._value_range = gamma, value_range
        self._return = torch.zeros(num_envs, device=device)
        # count, sum and sum of squares of G: of this iteration, and of all
        self._new = torch.zeros(3, dtype=torch.float64, device=device)
        self._all = torch.zeros(3, dtype=torch.float64, device=device)
        self._largest = torch.zeros(1, device=device)
        self.factor = torch.ones((), device=device)
        """What a reward is multiplied with."""

    def step(self, rewards: torch.Tensor, dones: torch.Tensor) -> None:
        """Take in one step of all environments."""
        # Discounted return so far: G <- gamma G + r
        self._return.mul_(self._gamma).add_(rewards.nan_to_num(0.0, 0.0, 0.0))
        wide = self._return.double()
        count = torch.full_like(wide[0], len(wide))
        self._new += torch.stack([count, wide.sum(), wide.square().sum()])
        self._largest.copy_(torch.maximum(self._largest, self._return.abs().max()))
        self._return.masked_fill_(dones.bool(), 0.0)

    def merge(self) -> None:
        """Bring the scale up to date with what all processes have seen."""
        self._all += sum_over_processes(self._new)
        self._new.zero_()
        max_over_processes(self._largest)
        count, total, square = self._all
        std = (square / count - (total / count).square()).clamp(min=0.0).sqrt()
        scale = torch.maximum(std.float(), self._largest[0] / self._value_range)
        # Note: nothing is scaled as long as every reward was zero
        self.factor.copy_(torch.where(scale > EPSILON, 1.0 / scale.clamp(min=EPSILON), 1.0))

    def interrupt(self) -> None:
        """Forget the running episodes."""
        self._return.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {
            "return": self._return.clone(),
            "all": self._all.clone(),
            "largest": self._largest.clone(),
            "factor": self.factor.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned; the running episodes only if the environments are as many."""
        if len(state["return"]) == len(self._return):
            self._return.copy_(state["return"])
        self._all.copy_(state["all"])
        self._largest.copy_(state["largest"])
        self.factor.copy_(state["factor"])
