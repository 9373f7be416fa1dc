"""The adaptive learning rate: smaller if the policies moved too far from those that acted, larger if hardly at all."""

from __future__ import annotations

from typing import Any

import torch

LARGEST_RATE = 1e-2
FACTOR = 1.5


class KlSchedule:
    """rsl_rl's rule, by mini-batch or (rl_games) by epoch, with a least rate of choice."""

    def __init__(self, when: str, least_rate: float) -> None:
        """Create the schedule.

        Args:
            when: ``minibatch`` or ``epoch``.
            least_rate: Least learning rate.
        """
        self._by_epoch = when == "epoch"
        self._least_rate = least_rate
        self._epoch: list[torch.Tensor] = []

    @torch.inference_mode()
    def adapt(self, alg: Any, batch: Any, params: tuple[torch.Tensor, ...], number: int) -> None:
        """Adapt the algorithm's rate to the divergence of the policies that are updated, relabelled rows included.

        Args:
            alg: The algorithm.
            batch: The mini-batch.
            params: Distribution parameters of its rows under the current policy.
            number: Number of the mini-batch in this update.
        """
        kl = torch.mean(alg.actor.get_kl_divergence(batch.old_distribution_params, params))
        if self._by_epoch:
            self._epoch.append(kl)
            if (number + 1) % alg.num_mini_batches:
                return
            kl = torch.stack(self._epoch).mean()
            self._epoch.clear()
        if alg.is_multi_gpu:
            torch.distributed.all_reduce(kl, op=torch.distributed.ReduceOp.SUM)
            kl /= alg.gpu_world_size
        if alg.gpu_global_rank == 0:
            if kl > alg.desired_kl * 2.0:
                alg.learning_rate = max(self._least_rate, alg.learning_rate / FACTOR)
            elif kl < alg.desired_kl / 2.0 and kl > 0.0:
                alg.learning_rate = min(LARGEST_RATE, alg.learning_rate * FACTOR)
        if alg.is_multi_gpu:
            rate = torch.tensor(alg.learning_rate, device=alg.device)
            torch.distributed.broadcast(rate, src=0)
            alg.learning_rate = rate.item()
        for group in alg.optimizer.param_groups:
            group["lr"] = alg.learning_rate
