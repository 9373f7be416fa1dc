"""What a run was made with: versions of packages, and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

FILE_NAME = "environment.json"
PACKAGES = (
    "epo_lab",
    "epo_tasks",
    "isaaclab",
    "isaacsim",
    "rsl-rl-lib",
    "torch",
    "newton",
    "warp-lang",
    "mujoco-warp",
    "ovphysx",
    "numpy",
)


def environment() -> dict[str, str]:
    """Return versions and machine by name; packages that are not installed are left out."""
    import torch

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    found["processor"] = f"{_processor()}, {os.cpu_count()} cores"
    found["cuda"] = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return found


def _processor() -> str:
    """Return the name of the processor, which Python itself does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
