"""Sizes: how large a run is. A value that depends on the size stands in one place, beside its name.

In configclasses that is ``size(4096, cpu=512, paper=24576)``, an Isaac Lab preset, so that ``presets=cpu`` works with
Isaac Lab's own commands; in plain settings a mapping such as ``{gpu: 8, paper: 64}``. What is not named is as on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epo_lab.base.device import default_device
from epo_lab.base.errors import UserError

SIZES = ("gpu", "cpu", "paper")
DEFAULT = "gpu"
FOREIGN_ENVS = {"cpu": 256, "gpu": 4096, "paper": 24576}
"""Environments of tasks that name no sizes, such as Isaac Lab's own."""
HARMLESS = {
    "num_envs",
    "num_object_variants",
    "num_cols",
    "horizontal_scale",
    "num_agents",
    "num_steps_per_env",
    "num_learning_epochs",
    "num_mini_batches",
    "batch_size",
    "size",
    "max_iterations",
    "save_interval",
    "keep_checkpoints",
    "hidden_dims",
    "rnn_hidden_dim",
    "warmup_steps",
    "interval_steps",
    "start_after_steps",
    "initial_delay_steps",
}
"""Settings that a size is expected to change; everything else is said aloud when a run starts."""


def size(gpu: Any, **others: Any) -> Any:
    """Return a value that depends on the size, for a configclass.

    Args:
        gpu: The value on one GPU, which is the default.
        others: The values of other sizes.
    """
    from isaaclab_tasks.utils.hydra import preset

    return preset(default=gpu, gpu=gpu, **others)


def at_size(settings: Any, name: str) -> Any:
    """Return plain settings with every value that depends on the size resolved."""
    if not isinstance(settings, Mapping):
        return settings
    if DEFAULT in settings:
        return settings.get(name, settings[DEFAULT])
    return {key: at_size(value, name) for key, value in settings.items()}


def default_size() -> str:
    """Return ``gpu`` if torch can use CUDA, else ``cpu``."""
    return "cpu" if default_device() == "cpu" else DEFAULT


def check_size(name: str) -> str:
    """Return the name of a size; raise a :class:`UserError` if there is none of that name."""
    if name not in SIZES:
        raise UserError(f"unknown profile '{name}': there are {', '.join(sorted(SIZES))}")
    return name


def changed_beyond_size(plain: Mapping[str, Any], sized: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield what a size changes that is not a matter of size, as ``path=value``."""
    for name, value in sized.items():
        old, here = plain.get(name), f"{path}.{name}"
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from changed_beyond_size(old, value, here)
        elif value != old and name not in HARMLESS:
            yield f"{here}={'null' if value is None else value}"
