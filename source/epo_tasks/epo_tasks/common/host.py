"""What the host has to know of the environments, without waiting for the device they are on."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class HostFlag:
    """Whether any of some flags was set: sent to the host when it is known, and read some work later.

    Isaac Lab's step waits for the device once, to learn which environments to reset. What was sent before that has
    arrived by then, so that reading it costs nothing.
    """

    def __init__(self, device: str | torch.device) -> None:
        """Create the flag; it is not set.

        Args:
            device: Where the flags are.
        """
        self._device = torch.device(device)
        on_gpu = self._device.type == "cuda"
        self._memory = torch.zeros((), dtype=torch.bool, pin_memory=on_gpu)
        self._value = self._memory.numpy()
        self._arrived = torch.cuda.Event() if on_gpu else None

    def set(self, flags: torch.Tensor) -> None:
        """Send whether any of these is set."""
        self._memory.copy_(flags.any(), non_blocking=True)
        if self._arrived is not None:
            self._arrived.record(torch.cuda.current_stream(self._device))

    def __bool__(self) -> bool:
        """Return what was sent last."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return bool(self._value)


def any_ended(env_ids: torch.Tensor | Sequence[int] | slice, ended: torch.Tensor) -> bool:
    """Return whether a reset ends any episode that had a step.

    Args:
        env_ids: Environments that are reset. A step names those whose episode ended in it, so that there is nothing
            to look up; a slice comes from a reset of the whole environment, which may be its first.
        ended: Whether the episodes of these environments had a step.
    """
    return bool(ended.any()) if isinstance(env_ids, slice) else True


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean of the values that a mask selects; NaN if there are none."""
    return torch.where(mask, values, 0.0).sum() / mask.sum()
