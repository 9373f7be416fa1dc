"""Which device a run uses when nobody chose one."""

from functools import cache


@cache
def default_device() -> str:
    """Return ``cuda:0`` if torch can use it, else ``cpu``."""
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"
