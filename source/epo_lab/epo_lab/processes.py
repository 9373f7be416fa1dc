"""What a process knows of the others when torchrun started several."""

from __future__ import annotations

import os


def rank() -> int:
    """Return the number of this process; 0 writes and prints."""
    return int(os.getenv("RANK", "0"))


def world_size() -> int:
    """Return the number of processes."""
    return int(os.getenv("WORLD_SIZE", "1"))


def own_device(device: str) -> str:
    """Return the device of this process: its own GPU if there are several processes."""
    if world_size() > 1 and device.startswith("cuda"):
        return f"cuda:{os.getenv('LOCAL_RANK', '0')}"
    return device
