"""The genes of all agents as a genome: rows, action noise, the optimizer's memory of both, and entropy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class GeneTable:
    """Genes that an optimizer steps; a child also inherits action noise and moments."""

    def __init__(
        self,
        genes: nn.Parameter,
        log_std: nn.Parameter | None,
        optimizer: torch.optim.Optimizer,
        *,
        inherits: bool = True,
    ) -> None:
        """Take the tables.

        Args:
            genes: Genes of all agents. Shape is (K, L).
            log_std: Action noise of all agents; None if they have none of their own. Shape is (K, A).
            optimizer: The optimizer of both.
            inherits: Whether children take the noise of their parents.
        """
        self.genes, self._noise, self._optimizer = genes, log_std, optimizer
        self._log_std = log_std if inherits else None
        self.entropy_shares = torch.arange(len(genes), device=genes.device) / max(len(genes) - 1, 1)
        """Place of every agent's entropy coefficient between the least, the first master's, and the largest."""
        self._first_noise = None if log_std is None else log_std.detach().clone()

    def read(self, slots: Sequence[int] | None = None) -> torch.Tensor:
        """Return genes, on the CPU."""
        genes = self.genes.detach().cpu()
        return genes if slots is None else genes[list(slots)]

    @torch.no_grad()
    def write(self, slots: Sequence[int], rows: torch.Tensor) -> None:
        """Replace genes; all other rows stay bit-identical."""
        self.genes[list(slots)] = rows.to(self.genes.device)

    @torch.no_grad()
    def inherit(self, slot: int, parents: Sequence[int]) -> None:
        """Give a child the mean action noise and entropy coefficient of its parents, and a memory in the optimizer.

        The first Adam moment of a child is zero and the second the mean of its parents': with both at zero the step
        counter, which belongs to the whole table, would make its first steps more than six times too long. A child of
        nobody has the first action noise, its predecessor's entropy coefficient, and the second moment of all.
        """
        pair = list(parents) or list(range(len(self.genes)))
        if parents:
            self.entropy_shares[slot] = self.entropy_shares[pair].mean()
        if self._log_std is not None and self._first_noise is not None:
            self._log_std[slot] = self._log_std[pair].mean(dim=0) if parents else self._first_noise[slot]
        for table in (self.genes, self._log_std):
            moments = self._optimizer.state.get(table, {}) if table is not None else {}
            if "exp_avg_sq" in moments:
                moments["exp_avg"][slot] = 0.0
                moments["exp_avg_sq"][slot] = moments["exp_avg_sq"][pair].mean(dim=0)

    @torch.no_grad()
    def swap(self, first: int, second: int) -> None:
        """Let two agents change places: genes, action noise, the optimizer's memory of both, and entropy."""
        pair, other = [first, second], [second, first]
        self.entropy_shares[pair] = self.entropy_shares[other].clone()
        for table in (self.genes, self._noise):
            if table is None:
                continue
            table[pair] = table[other]
            moments = self._optimizer.state.get(table, {})
            for name in ("exp_avg", "exp_avg_sq"):
                if name in moments:
                    moments[name][pair] = moments[name][other]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return what is neither a parameter nor in the optimizer."""
        return {"entropy_shares": self.entropy_shares}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.entropy_shares.copy_(state["entropy_shares"])
