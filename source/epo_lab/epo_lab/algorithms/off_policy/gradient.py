"""One gradient step: clipped, averaged over processes, and skipped if it is not finite, without a wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from epo_lab.base.processes import mean_over_processes, world_size


class GradientStep:
    """An Adam optimizer of some parameters. A step that is not finite changes nothing and is counted."""

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        learning_rate: float,
        *,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
    ) -> None:
        """Create the optimizer.

        Args:
            parameters: What it changes.
            learning_rate: Learning rate.
            weight_decay: Weight decay (AdamW).
            max_norm: Largest norm of a gradient. Defaults to None: any.
        """
        self.parameters = list(parameters)
        self.optimizer = torch.optim.AdamW(self.parameters, lr=learning_rate, weight_decay=weight_decay, fused=True)
        self._max_norm = max_norm
        device = self.parameters[0].device
        self.skipped = torch.zeros((), device=device)
        """Steps that were skipped so far."""
        self.in_a_row = torch.zeros((), device=device)
        """Steps that were skipped since the last one that was not."""

    def __call__(self, loss: torch.Tensor) -> torch.Tensor:
        """Take a step down a loss and return the norm of its gradient."""
        # Note: only the gradients of these parameters are computed, not those of others on the way
        gradients = torch.autograd.grad(loss, self.parameters)
        if world_size() > 1:
            gradients = _averaged(gradients)
        norm = torch.nn.utils.get_total_norm(gradients)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient

        # The optimizer's own kernel scales the gradient and leaves everything alone if it is not finite
        bad = (~norm.isfinite()).float()
        optimizer: Any = self.optimizer
        optimizer.found_inf = bad
        if self._max_norm is not None:
            optimizer.grad_scale = (norm / self._max_norm).clamp(min=1.0)
        optimizer.step()
        self.skipped += bad
        self.in_a_row.add_(bad).mul_(bad)
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Return optimizer and counters."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "skipped": self.skipped.clone(),
            "in_a_row": self.in_a_row.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.skipped.copy_(state["skipped"])
        self.in_a_row.copy_(state["in_a_row"])


def _averaged(gradients: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Return the mean over all processes, in one message."""
    flat = mean_over_processes(torch.cat([gradient.flatten() for gradient in gradients]))
    parts = flat.split([gradient.numel() for gradient in gradients])
    return tuple(part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True))
