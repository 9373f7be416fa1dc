"""Count what processes send to each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

WITH_TENSORS = ("all_reduce", "broadcast", "reduce", "send", "recv", "all_gather", "gather", "scatter")
WITH_OBJECTS = ("broadcast_object_list", "gather_object", "all_gather_object", "send_object_list", "recv_object_list")


@contextmanager
def sent_elements() -> Iterator[list[int]]:
    """Yield a list that gets the number of elements of every tensor that is sent; objects are refused."""
    kept = {name: getattr(torch.distributed, name) for name in (*WITH_TENSORS, *WITH_OBJECTS)}
    sizes: list[int] = []

    def counted(name):
        def call(values, *args, **kwargs):
            assert name in WITH_TENSORS, f"{name} sends objects"
            sizes.append(values.numel())
            return kept[name](values, *args, **kwargs)

        return call

    for name in kept:
        setattr(torch.distributed, name, counted(name))
    try:
        yield sizes
    finally:
        for name, function in kept.items():
            setattr(torch.distributed, name, function)
