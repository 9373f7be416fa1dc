"""Everything that concerns several processes: who this one is, and numbers on which all of them agree."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .errors import LostProcessError, UserError

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


def end_with_parent() -> None:
    """Have Linux send this process a SIGTERM as soon as the one that started it is gone, killed too."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def world_size() -> int:
    """Return the number of processes that are connected."""
    from torch import distributed

    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def join(backend: str, number: int, count: int) -> None:
    """Connect the processes, unless they are; what one of them waits for longer than :func:`time_out` is an error.

    Args:
        backend: ``nccl`` or ``gloo``.
        number: Number of this process.
        count: How many there are.
    """
    from torch import distributed

    if not distributed.is_initialized():
        limit = timedelta(seconds=time_out())
        store, _, _ = next(distributed.rendezvous("env://", number, count, timeout=limit))  # type: ignore[attr-defined]
        store.set_timeout(limit)
        name = agree_on_name(store, number, count, time_out())
        own = distributed.PrefixStore(name, store)  # type: ignore[attr-defined]
        distributed.init_process_group(backend, store=own, rank=number, world_size=count, timeout=limit)


def agree_on_name(store: Any, number: int, count: int, limit: float) -> str:
    """Return a name that the processes have in common and no earlier start of theirs: torchrun keeps one store for all.

    Addresses that a killed process left there would be taken for those of the one that was started in its place.

    Args:
        store: Where the processes leave notes.
        number: Number of this process.
        count: How many there are.
        limit: Longest wait for the others [s].
    """
    own = uuid.uuid4().hex
    if number > 0:
        store.set(f"hello/{number}", own)
        name = store.get(f"name/{own}").decode()
        store.set(f"{name}/{number}", "")
        return name
    missing, end = set(range(1, count)), time.monotonic() + limit
    while missing:
        for other in missing:
            if store.check([f"hello/{other}"]):
                store.set(f"name/{store.get(f'hello/{other}').decode()}", own)
        time.sleep(0.05)
        missing = {other for other in missing if not store.check([f"{own}/{other}"])}
        if missing and time.monotonic() > end:
            raise LostProcessError(f"rank 0 waited {limit:.0f} s for ranks {sorted(missing)} to start")
    return own


def time_out() -> float:
    """Return how long a process waits for the others [s]: ``EPO_TIMEOUT``, or 10 minutes."""
    text = os.getenv("EPO_TIMEOUT", "600")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 86400.0:
        raise UserError(f"EPO_TIMEOUT takes seconds between 1 and 86400, not '{text}'")
    return seconds


def meet(name: str, *, hurried: Callable[[], bool], store: Any = None, say_after: float = 30.0) -> None:
    """Wait until all processes have come to the same point; say for whom if that takes long.

    Args:
        name: Name of the point, in words; none that a process may still be leaving.
        hurried: Whether this process was asked to stop: it then waits 10 s longer at the most.
        store: Where the processes leave notes. Defaults to None: torch's own.
        say_after: When to say who is missing [s].
    """
    count = world_size()
    if count == 1:
        return
    from torch import distributed

    store = store or distributed.distributed_c10d._get_default_store()
    _meet(store, rank(), count, name, hurried, say_after, time_out())


def _meet(
    store: Any, own: int, count: int, name: str, hurried: Callable[[], bool], say_after: float, limit: float
) -> None:
    store.set(f"{name}/{own}", "")
    if store.add(name, 1) == count:
        store.set(f"{name}/all", "")
    begin, said = time.monotonic(), False
    while not _comes(store, f"{name}/all"):
        waited = time.monotonic() - begin
        limit = min(limit, waited + 10.0) if hurried() else limit
        if waited < min(limit, math.inf if said else say_after):
            continue
        missing = [other for other in range(count) if not store.check([f"{name}/{other}"])]
        ranks = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
        if waited >= limit:
            raise LostProcessError(f"rank {own} waited {waited:.0f} s for {ranks} ({name}) and gives up")
        print(f"[epo-lab] rank {own} has waited {waited:.0f} s for {ranks} ({name})", file=sys.stderr, flush=True)
        said = True
    # who leaves last takes the notes away: nobody reads them any more
    if store.add(f"{name}/left", 1) == count:
        for key in (name, f"{name}/all", f"{name}/left", *(f"{name}/{other}" for other in range(count))):
            store.delete_key(key)


def _comes(store: Any, key: str) -> bool:
    """Return whether a note is there within half a second; signals are heard in between."""
    try:
        store.wait([key], timedelta(seconds=0.5))
    except RuntimeError:
        return False
    return True


@contextmanager
def heartbeat() -> Iterator[None]:
    """Let the processes watch each other in the body, each the next one: who gives no sign of life is named.

    In the middle of an update nothing else says for whom the others wait: a process that is frozen, or out of reach.
    """
    if world_size() == 1:
        yield
        return
    from torch import distributed

    store, over = distributed.distributed_c10d._get_default_store(), threading.Event()
    thread = threading.Thread(target=_beat, args=(store, rank(), world_size(), over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=1.0)


def _beat(store: Any, own: int, count: int, over: threading.Event, every: float = 5.0, say_after: float = 30.0) -> None:
    other, beats, seen, since, said, gone = (own + 1) % count, 0, b"", time.monotonic(), False, b"gone"
    # without the store there is no torchrun either, and nobody to tell
    with suppress(RuntimeError):
        while not over.wait(every):
            beats += 1
            store.set(f"alive/{own}", str(beats))
            now = store.get(f"alive/{other}") if store.check([f"alive/{other}"]) else b""
            if now != seen:
                seen, since, said = now, time.monotonic(), False
            elif not said and now != gone and time.monotonic() - since > say_after:
                said = True
                line = f"[epo-lab] rank {own} has had no sign of life from rank {other} for {say_after:.0f} s"
                print(line, file=sys.stderr, flush=True)
        store.set(f"alive/{own}", gone)


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


def all_processes(flag: bool, device: str | torch.device) -> bool:
    """Return whether a flag is set in all processes."""
    import torch

    return not bool(max_over_processes(torch.tensor([not flag], dtype=torch.int32, device=device)))


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

    checksum = table.sum(dtype=torch.float64)
    ends = torch.stack([checksum, -checksum])
    distributed.all_reduce(ends, op=distributed.ReduceOp.MAX)
    if float(ends[0] + ends[1]) != 0.0:
        raise RuntimeError("the processes' populations have drifted apart: the run cannot be trusted and is stopped")
