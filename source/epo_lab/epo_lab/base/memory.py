"""How much memory a device has left, so that what does not fit is refused with a number."""

from __future__ import annotations

from pathlib import Path

import torch

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


def _container_bytes() -> int:
    """Return what the container may still take; very much without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        limit = "max"
    return 2**62 if limit == "max" else int(limit) - used
