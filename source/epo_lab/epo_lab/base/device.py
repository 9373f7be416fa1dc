"""Which device a run uses when nobody chose one, and whether one can be used."""

from functools import cache

from .errors import UserError


@cache
def default_device() -> str:
    """Return ``cuda:0`` if torch can use it, else ``cpu``."""
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


def usable(device: str) -> str:
    """Return a device that a config names, or the CPU if it is a GPU and there is none."""
    return default_device() if device.startswith("cuda") and default_device() == "cpu" else device


def check_device(device: str) -> None:
    """Raise a :class:`UserError` if torch cannot use a device."""
    import torch

    try:
        torch.empty(0, device=device).tolist()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {device} cannot be used ({reason}): try --device cpu") from None
