"""A virtual accelerator: tensors that claim a device of their own, compute on the CPU, and tell what a GPU would feel.

As on a GPU, tensors of this device do not mix with those of the CPU, except numbers without dimensions; random numbers
come from no generator of the CPU; and what makes the host wait is counted, with the line that asked for it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

DEVICE = "virtual:0"
READS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "bincount"),
    *("_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"),
}
"""Operations whose result, or its size, the host reads."""
COPIES = {"copy_", "_to_copy", "set_"}
"""Operations that may see tensors of two devices."""
_CpuGenerator = torch.Generator
_generators: dict[int, torch.Generator] = {}
"""Generators of the virtual device, by where torch keeps them."""
_SITES = str(Path(torch.__file__).parent)

waits: Counter[str] = Counter()
"""What made the host wait so far: the operation and the line that asked for it."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count what waits in the body."""
    before = Counter(waits)
    found: Counter[str] = Counter()
    yield found
    found.update(waits - before)


class VirtualTensor(torch.Tensor):
    """A tensor of the virtual device, around one of the CPU."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> VirtualTensor:
        """Wrap a tensor; the wrapper is an ordinary one also in inference mode, whose views could not be made else."""
        with torch.inference_mode(False):
            return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
                cls,
                inner.size(),
                strides=inner.stride(),
                storage_offset=inner.storage_offset(),
                dtype=inner.dtype,
                device=torch.device(DEVICE),
            )

    def __init__(self, inner: torch.Tensor) -> None:
        """Keep the tensor that computes."""
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        """Show without asking the device."""
        return f"VirtualTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign; torch hands a number to a GPU as a tensor of the CPU, and this does too."""
        super().__setitem__(index, torch.tensor(value, dtype=self.dtype) if isinstance(value, int | float) else value)

    def tolist(self) -> Any:
        """Read all numbers at once."""
        _count("tolist")
        return self.inner.tolist()

    def __deepcopy__(self, memo: dict[int, Any]) -> VirtualTensor:
        """Copy, as modules and settings are copied."""
        if id(self) not in memo:
            made = VirtualTensor(self.inner.detach().clone())
            if isinstance(self, torch.nn.Parameter):
                made = torch.nn.Parameter(made, self.requires_grad)
            memo[id(self)] = made
        return memo[id(self)]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute on the CPU, under the rules of a GPU."""
        kwargs = dict(kwargs or {})
        # Note: without autograd, operations that are made of others arrive whole
        if _is_composite(func):
            return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        name = func.overloadpacket.__name__
        _check_and_count(name, args, kwargs)
        target = kwargs.pop("device", None) if name not in COPIES else kwargs.get("device")
        leaves = target is not None and torch.device(target).type != "virtual"
        if target is not None:
            kwargs["device"] = torch.device("cpu")
        if name in _CELLS:
            result = _CELLS[name](*_each(_unwrap, args))
        else:
            result = func(*_each(_unwrap, args), **{key: _each(_unwrap, value) for key, value in kwargs.items()})
        if name.endswith("_") and not name.startswith("_foreach") and isinstance(args[0], VirtualTensor):
            return args[0]
        if "out" in kwargs:
            if kwargs["out"].shape != result.shape:
                raise NotImplementedError(f"{name} resizes what it writes to")
            return kwargs["out"]
        if name == "copy_" or leaves:
            return args[0] if name == "copy_" else result
        return _each(_wrap, result)


class _VirtualGenerator(_CpuGenerator):
    """Random numbers of the virtual device; torch sees a generator of the CPU, and is told with :data:`_generators`."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The virtual device."""
        return torch.device(DEVICE)


def make_generator(device: Any = "cpu") -> torch.Generator:
    """Return a generator of a device; stands in for ``torch.Generator``, which knows no virtual device."""
    if torch.device(device).type != "virtual":
        return _CpuGenerator(device)
    generator = _VirtualGenerator("cpu")
    _generators[generator._cdata] = generator  # type: ignore[attr-defined]
    return generator


@cache
def _is_composite(func: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def _each(function: Any, values: Any) -> Any:
    """Apply a function to a value, or to all of a list or tuple."""
    if isinstance(values, list | tuple):
        return type(values)(_each(function, value) for value in values)
    return function(values)


def moved(values: Any, device: str) -> Any:
    """Return a nested state as another device loads it from a file."""
    return tree_map(
        lambda value: value.detach().to(device).clone() if isinstance(value, torch.Tensor) else value, values
    )


def _wrap(value: Any) -> Any:
    return VirtualTensor(value) if type(value) is torch.Tensor else value


def _unwrap(value: Any) -> Any:
    return value.inner if isinstance(value, VirtualTensor) else value


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _check_and_count(name: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Refuse what a GPU refuses, and count what it waits for."""
    tensors = list(_tensors([*args, *kwargs.values()]))
    strangers = [t for t in tensors if not isinstance(t, VirtualTensor)]
    if name in COPIES:
        if _waits_for_copy(args, kwargs, bool(strangers)):
            _count("copy between devices")
        return
    if any(t.ndim > 0 for t in strangers):
        raise RuntimeError(f"{name}: expected all tensors on one device, found {DEVICE} and cpu")
    generator = kwargs.get("generator")
    if generator is not None and generator._cdata not in _generators:
        raise RuntimeError(f"{name}: expected a generator of {DEVICE}, found one of {generator.device}")
    if name in READS:
        _count(name)
    elif name.removesuffix("_") in ("index", "index_put"):
        indices = [index for index in args[1] if index is not None]
        by_mask = any(index.dtype in (torch.bool, torch.uint8) for index in indices)
        # A number goes where a single mask says without anybody waiting; where numbers say, it is uploaded first
        fills = bool(strangers)
        if by_mask != fills or (by_mask and len(indices) > 1):
            _count("index by a mask" if by_mask else "index with a number")


def _waits_for_copy(args: Any, kwargs: dict[str, Any], mixed: bool) -> bool:
    """Return whether a copy keeps the host: one to the CPU does, one from it unless it is told not to."""
    target = kwargs.get("device")
    to_cpu = not isinstance(args[0], VirtualTensor) or (target is not None and torch.device(target).type == "cpu")
    patient = bool(kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
    return to_cpu or (mixed and not patient)


def _count(what: str) -> None:
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith(_SITES)):
        frame = frame.f_back
    place = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    waits[f"{what} {place}"] += 1


def _lstm_cell(igates: Any, hgates: Any, cx: Any, ibias: Any = None, hbias: Any = None) -> Any:
    """Compute what torch does in one kernel on a GPU and has no kernel for on the CPU."""
    gates = igates + hgates
    gates = gates if ibias is None else gates + ibias + hbias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], dim=1)


def _lstm_cell_backward(grad_hy: Any, grad_cy: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> Any:
    i, f, g, o = workspace.chunk(4, 1)
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    inner = cy.tanh()
    into = grad_hy * o * (1 - inner * inner) + (0.0 if grad_cy is None else grad_cy)
    parts = [into * g * i * (1 - i), into * cx * f * (1 - f), into * i * (1 - g * g), grad_hy * inner * o * (1 - o)]
    gates = torch.cat(parts, dim=1)
    return gates, into * f, gates.sum(0) if has_bias else None


_CELLS = {"_thnn_fused_lstm_cell": _lstm_cell, "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward}


class _Module(_DummyBackendModule):
    """What torch asks a backend's module for."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return what mixed precision could use."""
        return [torch.bfloat16]


@cache
def enable() -> None:
    """Make the device known to torch, for the rest of the process; before its first backward pass."""
    _setup_privateuseone_for_python_backend("virtual", backend_module=_Module())
    for name, kernel in _KERNELS.items():
        _library.impl(name, kernel, "PrivateUse1")


def _empty(size: Any, *, dtype: Any = None, **_: Any) -> VirtualTensor:
    return VirtualTensor(torch.empty(size, dtype=dtype, device="cpu"))


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> VirtualTensor:
    return VirtualTensor(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy what ``torch.tensor`` made."""
    if not non_blocking:
        _count("copy between devices")
    target.inner.copy_(source)  # type: ignore[attr-defined]
    return target


def _made_by(function: Any) -> Any:
    """Return a kernel of a function that makes a tensor; torch's own would resize an empty one."""

    def make(*args: Any, dtype: Any = None, **_: Any) -> VirtualTensor:
        return VirtualTensor(function(*args, dtype=dtype, device="cpu"))

    return make


_KERNELS = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "_copy_from": _copy_from,
    **dict.fromkeys(("arange", "arange.start", "arange.start_step"), _made_by(torch.arange)),
    **dict.fromkeys(("eye", "eye.m"), _made_by(torch.eye)),
}
_library = torch.library.Library("aten", "IMPL")
