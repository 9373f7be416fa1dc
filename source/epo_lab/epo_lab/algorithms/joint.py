"""Numbers that all processes of a distributed run agree on."""

from __future__ import annotations

import torch

from epo_lab.population.genetics import Child


def world_size() -> int:
    """Return the number of processes."""
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if ready else 1


def normalized(values: torch.Tensor) -> torch.Tensor:
    """Return values with mean 0 and standard deviation 1 over all processes; alone it is rsl_rl's formula."""
    if world_size() == 1:
        return (values - values.mean()) / (values.std() + 1e-8)
    wide = values.double()
    sums = torch.stack([wide.new_tensor(wide.numel()), wide.sum(), wide.square().sum()])
    torch.distributed.all_reduce(sums)
    count, mean = sums[0], sums[1] / sums[0]
    variance = (sums[2] - count * mean.square()).clamp(min=0.0) / (count - 1.0)
    return (values - mean.to(values.dtype)) / (variance.sqrt().to(values.dtype) + 1e-8)


def joint_mean(values: torch.Tensor) -> torch.Tensor:
    """Return the mean over all processes, which have equally many values."""
    mean = values.mean()
    if world_size() > 1:
        torch.distributed.all_reduce(mean)
        mean /= world_size()
    return mean


def broadcast_children(children: list[Child], gene_dim: int, device: str | torch.device) -> list[Child]:
    """Return the children that rank 0 decided on."""
    if world_size() == 1:
        return children
    count = torch.tensor([len(children)], device=device)
    torch.distributed.broadcast(count, src=0)
    table = torch.zeros(int(count), gene_dim + 3, dtype=torch.float64, device=device)
    if torch.distributed.get_rank() == 0:
        for row, child in zip(table, children, strict=True):
            row[:3] = torch.tensor([child.slot, *child.parents])
            row[3:] = child.gene
    torch.distributed.broadcast(table, src=0)
    rows = table.cpu()
    return [Child(int(r[0]), (int(r[1]), int(r[2])), r[3:].float()) for r in rows]


def check_agreement(table: torch.Tensor) -> None:
    """Raise if the processes do not hold the same table."""
    if world_size() == 1:
        return
    checksum = table.double().sum()
    ends = torch.stack([checksum, -checksum])
    torch.distributed.all_reduce(ends, op=torch.distributed.ReduceOp.MAX)
    if float(ends[0] + ends[1]) != 0.0:
        raise RuntimeError("the processes' genes have drifted apart: the run cannot be trusted and is stopped")
