"""How much memory a device has left, so that what does not fit is refused with a number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDictBase

from .errors import UserError

RESERVE = 0.1
"""Share of the free memory that is left to everything else."""


def free_bytes(device: str | torch.device) -> int:
    """Return the free memory of a device [bytes]."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(line for line in lines if line.startswith("MemAvailable"))
    return min(int(available.split()[1]) * 1024, _container_bytes())


def check_fits(what: str, size: int, device: str | torch.device, remedy: str) -> None:
    """Raise a :class:`UserError` if something does not fit a device.

    Args:
        what: What is to be allocated, in words.
        size: Its size [bytes].
        device: Where it would go.
        remedy: What the user can do.
    """
    free = free_bytes(device)
    if size > (1.0 - RESERVE) * free:
        raise UserError(f"{what} needs {gigabytes(size)} on {device}, where {gigabytes(free)} are free: {remedy}")


def gigabytes(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def held_bytes(*owners: Any) -> int:
    """Return the bytes of all tensors that some objects hold, each memory counted once.

    Args:
        owners: Modules, optimizers, storages, or containers of these and of tensors.
    """
    seen: set[int] = set()
    memory: dict[int, int] = {}
    waiting = list(owners)
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            memory[storage.data_ptr()] = storage.nbytes()
            waiting.append(value.grad if value.is_leaf else None)
        elif value is not None and id(value) not in seen:
            seen.add(id(value))
            waiting += _parts(value)
    return sum(memory.values())


def _parts(value: Any) -> list[Any]:
    """Return what an object holds."""
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, torch.optim.Optimizer):
        # Note: parameters are keys of the state, and the networks'
        return list(value.state.values())
    if isinstance(value, Mapping | TensorDictBase):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    return list(vars(value).values()) if type(value).__module__.startswith(("epo_lab.", "rsl_rl.")) else []


def _container_bytes() -> int:
    """Return what the container may still take; very much without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        limit = "max"
    return 2**62 if limit == "max" else int(limit) - used
