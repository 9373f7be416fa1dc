"""Find every tensor and number of nested objects by name, and write them back in place.

A simulated task keeps its state in the attributes of some hundred objects: managers, terms, buffers, caches. Nobody
lists them; this walks along attributes, dicts and lists, so that a term which is new tomorrow is found too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

SMALL = 4096
"""Numbers of a tensor that is kept in any case; a larger one only if it has a row an environment."""

STRANGERS = {
    *("cfg", "_cfg", "sim", "_sim", "stage", "stage_id", "extras", "recorder_manager", "video_recorders"),
    *("manager_visualizers", "_launch_cache", "_read_launch_cache"),
}
"""Attributes that hold no state of the episodes: settings, handles of this process, what a step hands out."""


class Leaf(NamedTuple):
    """A tensor or a number, and who holds it."""

    owner: Any
    key: Any
    value: Any


class Walk:
    """All leaves below some objects, by path; what two objects share is found once."""

    def __init__(self, enters: Callable[[Any], bool], num_envs: int) -> None:
        """Create a walk that has seen nothing.

        Args:
            enters: Whether the attributes of an object are looked at.
            num_envs: Number of environments.
        """
        self._enters, self._num_envs = enters, num_envs
        self._seen: dict[int, Any] = {}
        self._memory: set[tuple] = set()
        self.owners: dict[str, Any] = {}
        """Objects and containers by path."""
        self.leaves: dict[str, Leaf] = {}
        """Tensors, as views that can be written to, and numbers by path."""

    def add(self, path: str, owner: Any) -> None:
        """Look at an object or container and all below it."""
        # Note: kept alive, because an id is that of another object when its own is gone
        if id(owner) in self._seen:
            return
        self._seen[id(owner)] = owner
        self.owners[path] = owner
        for key, value in _items(owner):
            self._add_value(f"{path}/{key}", owner, key, value)

    def _add_value(self, path: str, owner: Any, key: Any, value: Any) -> None:
        tensor = as_tensor(value)
        if tensor is not None:
            self._add_tensor(path, owner, key, tensor)
        elif isinstance(value, torch.Generator) or (_is_plain(value) and not isinstance(owner, tuple)):
            self.leaves[path] = Leaf(owner, key, value)
        elif isinstance(value, dict | list | tuple) or (hasattr(value, "__dict__") and self._enters(value)):
            self.add(path, value)

    def _add_tensor(self, path: str, owner: Any, key: Any, tensor: torch.Tensor) -> None:
        place = tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype
        kept = tensor.numel() <= SMALL or any(size % self._num_envs == 0 for size in tensor.shape)
        # Note: a tensor that repeats itself is a constant, and nobody can write to it
        repeats = any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))
        if kept and not repeats and (tensor.numel() == 0 or place not in self._memory):
            self._memory.add(place)
            self.leaves[path] = Leaf(owner, key, tensor)


def read(walk: Walk) -> dict[str, Any]:
    """Return copies of all leaves, tensors in the memory of the host; of a generator its state."""
    return {path: _copy(leaf.value) for path, leaf in walk.leaves.items()}


def write(walk: Walk, state: dict[str, Any], device: str | torch.device) -> None:
    """Write leaves back; all of them have a place.

    Args:
        walk: Where to write: a walk along the same objects.
        state: What :func:`read` returned.
        device: Of tensors that are not there yet.
    """
    lost = {_cache(path) for path, value in state.items() if not _fits(walk, path, value)}
    for path, value in state.items():
        leaf = _place(walk, path)
        if leaf is None or path in lost:
            continue
        there = leaf.value
        if isinstance(there, torch.Generator):
            there.set_state(value)
            continue
        if isinstance(value, torch.Tensor):
            if _same_kind(there, value):
                there.copy_(value)
                continue
            value = value.to(there.device if isinstance(there, torch.Tensor) else device, copy=True)
        elif type(there) is type(value) and there == value:
            continue
        if isinstance(leaf.owner, dict | list):
            leaf.owner[leaf.key] = value
        else:
            setattr(leaf.owner, leaf.key, value)


def homeless(walk: Walk, state: dict[str, Any]) -> list[str]:
    """Return the paths of tensors for which there is no place: an object is not there, or has another shape."""
    return [path for path, value in state.items() if not _fits(walk, path, value) and _cache(path) not in state]


def _cache(path: str) -> str:
    """Return where the time of a cache would stand that holds the data of a path.

    Caches are made when they are first read. One that is not there yet stays outdated, and is computed when it is read.
    """
    return f"{path.partition('/data/')[0]}/timestamp"


def _fits(walk: Walk, path: str, value: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return True
    leaf = _place(walk, path)
    if leaf is None or _same_kind(leaf.value, value):
        return leaf is not None
    # what is a tensor of torch can be replaced by another; memory of the engine cannot
    named = leaf.owner if isinstance(leaf.owner, dict) else getattr(leaf.owner, "__dict__", {})
    return not isinstance(leaf.owner, list | tuple) and isinstance(named.get(leaf.key), torch.Tensor | None)


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Generator):
        return value.get_state()
    return value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value


def _same_kind(there: Any, value: torch.Tensor) -> bool:
    if isinstance(there, torch.Generator):
        return True
    return isinstance(there, torch.Tensor) and there.shape == value.shape and there.dtype == value.dtype


def _place(walk: Walk, path: str) -> Leaf | None:
    """Return the place of a path: a leaf, or a new one in an object that is there."""
    if path in walk.leaves:
        return walk.leaves[path]
    parent, _, key = path.rpartition("/")
    owner = walk.owners.get(parent)
    if owner is None or isinstance(owner, list | tuple):
        return None
    return Leaf(owner, key, None)


def as_tensor(value: Any) -> torch.Tensor | None:
    """Return a tensor or an array of Warp as a tensor that shares its memory; None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    if type(value).__module__.partition(".")[0] != "warp" or not hasattr(value, "strides"):
        return None
    import warp as wp

    try:
        return wp.to_torch(value, requires_grad=False)
    except (TypeError, RuntimeError):
        # arrays of structs are launch arguments
        return None


def _items(owner: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(owner, dict):
        yield from ((key, value) for key, value in owner.items() if isinstance(key, str | int) and key not in STRANGERS)
    elif isinstance(owner, list | tuple):
        yield from enumerate(owner)
    else:
        # Note: names that end in _ta are Isaac Lab's views of other attributes, made when somebody asks for them
        yield from ((n, value) for n, value in vars(owner).items() if n not in STRANGERS and not n.endswith("_ta"))


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, none, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float)
