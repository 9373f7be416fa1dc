"""Everything that concerns several processes: who this one is, and numbers on which all of them agree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# torch is imported where it is needed: commands ask for the rank before they load it
if TYPE_CHECKING:
    import torch


def rank() -> int:
    """Return the number of this process; 0 writes and prints."""
    return int(os.getenv("RANK", "0"))


def launched_world_size() -> int:
    """Return how many processes were started, whether they have found each other yet or not."""
    return int(os.getenv("WORLD_SIZE", "1"))


def own_device(device: str) -> str:
    """Return the device of this process: its own GPU if there are several processes."""
    if launched_world_size() > 1 and device.startswith("cuda"):
        return f"cuda:{os.getenv('LOCAL_RANK', '0')}"
    return device


def own_cores() -> int:
    """Return how many processor cores are for this process: those of the machine, shared by all that were started."""
    return max(len(os.sched_getaffinity(0)) // int(os.getenv("LOCAL_WORLD_SIZE", "1")), 1)


def world_size() -> int:
    """Return the number of processes that are connected."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def join_over_gloo(number: int, count: int) -> None:
    """Connect CPU processes, unless they are."""
    from torch import distributed

    if not distributed.is_initialized():
        distributed.init_process_group("gloo", rank=number, world_size=count)


def sum_over_processes(values: torch.Tensor) -> torch.Tensor:
    """Add up a tensor over all processes, in place, and return it."""
    if world_size() > 1:
        from torch import distributed

        distributed.all_reduce(values)
    return values


def mean_over_processes(values: torch.Tensor) -> torch.Tensor:
    """Average a tensor over all processes, in place, and return it."""
    if world_size() > 1:
        values = sum_over_processes(values)
        values /= world_size()
    return values


def max_over_processes(values: torch.Tensor) -> torch.Tensor:
    """Replace a tensor by the largest of all processes, in place, and return it."""
    if world_size() > 1:
        from torch import distributed

        distributed.all_reduce(values, op=distributed.ReduceOp.MAX)
    return values


def first_process_decides(values: torch.Tensor) -> torch.Tensor:
    """Replace a tensor by rank 0's, in place, and return it."""
    if world_size() > 1:
        from torch import distributed

        distributed.broadcast(values, src=0)
    return values


def first_process_object(value: Any) -> Any:
    """Return rank 0's value, which can be anything that pickles."""
    return object_of(0, value)


def object_of(owner: int, value: Any) -> Any:
    """Return one process's value, which can be anything that pickles."""
    if world_size() == 1:
        return value
    from torch import distributed

    box = [value]
    distributed.broadcast_object_list(box, src=owner)
    return box[0]


def gather_objects(value: Any) -> list[Any] | None:
    """Return the values of all processes on rank 0, in their order, and None on the others."""
    if world_size() == 1:
        return [value]
    from torch import distributed

    values = [None] * world_size() if rank() == 0 else None
    distributed.gather_object(value, values)
    return values


def send_object(value: Any, receiver: int) -> None:
    """Send something that pickles to another process, which calls :func:`receive_object`."""
    from torch import distributed

    distributed.send_object_list([value], dst=receiver)


def receive_object(sender: int) -> Any:
    """Return what another process sends with :func:`send_object`."""
    from torch import distributed

    box: list[Any] = [None]
    distributed.recv_object_list(box, src=sender)
    return box[0]


@contextmanager
def alone() -> Iterator[None]:
    """Let this process count as the only one in the body, for rsl_rl too: what is learned there is its own."""
    if world_size() == 1:
        yield
        return
    from torch import distributed

    together = distributed.group.WORLD
    distributed.group.WORLD = None
    try:
        yield
    finally:
        distributed.group.WORLD = together


def any_process(flag: bool, device: str | torch.device) -> bool:
    """Return whether the flag is set in any process."""
    if world_size() == 1:
        return flag
    import torch

    return bool(sum_over_processes(torch.tensor([float(flag)], device=device)))


def joint_mean(values: torch.Tensor) -> torch.Tensor:
    """Return the mean over all processes, which have equally many values."""
    return mean_over_processes(values.mean())


def mean_and_std(*values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of some values together, over all processes."""
    import torch

    joined = values[0] if len(values) == 1 else torch.cat([value.flatten() for value in values])
    if world_size() == 1:
        return joined.mean(), joined.std()
    wide = joined.double()
    count, total, square = sum_over_processes(
        torch.stack([wide.new_tensor(wide.numel()), wide.sum(), wide.square().sum()])
    )
    mean = total / count
    variance = (square - count * mean.square()).clamp(min=0.0) / (count - 1.0)
    return mean.to(joined.dtype), variance.sqrt().to(joined.dtype)


def check_agreement(table: torch.Tensor) -> None:
    """Raise if the processes do not hold the same table."""
    if world_size() == 1:
        return
    import torch
    from torch import distributed

    checksum = table.double().sum()
    ends = torch.stack([checksum, -checksum])
    distributed.all_reduce(ends, op=distributed.ReduceOp.MAX)
    if float(ends[0] + ends[1]) != 0.0:
        raise RuntimeError("the processes' genes have drifted apart: the run cannot be trusted and is stopped")
