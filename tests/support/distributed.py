"""Run a function in two processes that talk over gloo."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

WORLD_SIZE = 2


def run_in_two_processes(function: Callable[[int], Any], folder: Path) -> list[Any]:
    """Return what ``function(rank)`` returned in each process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(_entry, (function, folder, port), nprocs=WORLD_SIZE)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=False) for rank in range(WORLD_SIZE)]


def _entry(rank: int, function: Callable[[int], Any], folder: Path, port: int) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD_SIZE)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)
    try:
        torch.save(function(rank), folder / f"rank{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()
