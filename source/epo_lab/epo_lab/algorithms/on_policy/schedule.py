"""The adaptive learning rate: smaller if the policies moved too far from those that acted, larger if hardly at all."""

from __future__ import annotations

import torch

from epo_lab.base.processes import first_process_decides, mean_over_processes, rank, world_size

LARGEST_RATE = 1e-2
FACTOR = 1.5


Params = tuple[torch.Tensor, ...]
"""Parameters of the distributions of all rows of a mini-batch."""


class KlSchedule:
    """rsl_rl's rule, by mini-batch, or rl_games', by epoch, with a least rate of choice.

    rl_games measures how far the policies moved since the mini-batch was last visited: in the first epoch since they
    acted, afterwards since the epoch before.
    """

    def __init__(self, when: str, least_rate: float) -> None:
        """Create the schedule.

        Args:
            when: ``minibatch`` or ``epoch``.
            least_rate: Least learning rate.
        """
        self._by_epoch = when == "epoch"
        self._least_rate = least_rate
        self._epoch: list[torch.Tensor] = []
        self._visited: dict[int, Params] = {}

    def reference(self, visit: int, index: int, acted: Params, now: Params) -> Params:
        """Return the policies that those of a mini-batch are compared with.

        Args:
            visit: How often the mini-batch was visited before.
            index: Number of the mini-batch within an epoch.
            acted: The policies that acted.
            now: The policies before this gradient step.
        """
        if not self._by_epoch:
            return acted
        before = self._visited[index] if visit > 0 else acted
        self._visited[index] = tuple(param.detach() for param in now)
        return before

    @torch.inference_mode()
    def adapt(self, rate: float, kl: torch.Tensor, desired_kl: float, *, ends_epoch: bool) -> float:
        """Return the learning rate after a mini-batch.

        Args:
            rate: The rate so far.
            kl: Mean divergence of the mini-batch's policies from the reference, relabelled rows included.
            desired_kl: Divergence to aim at.
            ends_epoch: Whether this is the last mini-batch of an epoch.
        """
        if self._by_epoch:
            self._epoch.append(kl)
            if not ends_epoch:
                return rate
            kl = torch.stack(self._epoch).mean()
            self._epoch.clear()
        kl = mean_over_processes(kl)

        # Double or half of the desired divergence changes the rate; rank 0 decides for all
        if rank() == 0 or world_size() == 1:
            if kl > desired_kl * 2.0:
                rate = max(self._least_rate, rate / FACTOR)
            elif kl < desired_kl / 2.0 and kl > 0.0:
                rate = min(LARGEST_RATE, rate * FACTOR)
        if world_size() > 1:
            rate = first_process_decides(torch.tensor(rate, device=kl.device)).item()
        return rate
