"""Gradient steps of an actor and twin Q functions on transitions of a replay.

A learner knows networks and options, no environment: an algorithm acts and stores, and hands batches over. Others that
learn with the same critic, such as the members of a population, call :meth:`Learner.actor_update` with their own actor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import torch
from tensordict import TensorDict
from torch.optim.swa_utils import get_ema_multi_avg_fn

from epo_lab.algorithms.base import Part
from epo_lab.models.q_functions import QFunctions
from epo_lab.models.squashed import BoundedActor
from epo_lab.storage.replay import Transitions

from .gradient import GradientStep
from .losses import REDUCTIONS, cross_entropy_loss, distribution_target, squared_loss, td_target
from .options import ReplayLearningOptions


class Acts(Protocol):
    """One actor, or several that see the same observations."""

    distribution: Any

    def output(self, obs: TensorDict) -> torch.Tensor:
        """Return what the network says, shape (B, out), or what several say, shape (P, B, out)."""
        ...


class Learner(ABC):
    """Learns a policy and two Q functions; SAC and TD3 differ in the next action and in what the policy climbs."""

    def __init__(
        self, actor: BoundedActor, critic: QFunctions, options: ReplayLearningOptions, generator: torch.Generator
    ) -> None:
        """Take networks and options.

        Args:
            actor: The policy.
            critic: Its Q functions.
            options: Options.
            generator: Where noise is drawn from, on the device of the networks.
        """
        self.actor, self.critic, self.target = actor, critic, critic.make_target()
        self.generator = generator
        self.options = options
        self.critic_step = self.make_step(critic.net)
        self.actor_step = self.make_step(actor.mlp)
        self._reduce = REDUCTIONS[options.policy_q]
        self._following = [(list(self.target.net.parameters()), list(critic.net.parameters()))]
        """Parameters that follow others."""
        self._follow: Any = get_ema_multi_avg_fn(1.0 - options.tau)
        self.meter = Meter()

    def make_step(self, network: torch.nn.Module) -> GradientStep:
        """Return a new optimizer of a network."""
        options = self.options
        return GradientStep(
            network.parameters(),
            options.learning_rate,
            weight_decay=options.weight_decay,
            max_norm=options.max_grad_norm,
        )

    # --- what algorithms differ in

    @abstractmethod
    def next_actions(self, obs: TensorDict) -> tuple[torch.Tensor, torch.Tensor | float]:
        """Return the unit actions that follow, and the entropy bonus of their values."""

    @abstractmethod
    def actor_loss(self, batch: Transitions, actor: Acts) -> torch.Tensor:
        """Return what an actor, or several together, must make smaller."""

    # --- gradient steps

    def update(self, batch: Transitions, reward_factor: torch.Tensor | float = 1.0, *, with_policy: bool) -> None:
        """Take one step of the critic and, if it is its turn, of the policy.

        Args:
            batch: Transitions.
            reward_factor: What rewards are multiplied with.
            with_policy: Whether it is the policy's turn.
        """
        self.critic_update(batch, reward_factor)
        if with_policy:
            self.actor_update(batch)

    def critic_update(self, batch: Transitions, reward_factor: torch.Tensor | float = 1.0) -> None:
        """Take one step of the critic, and let the targets follow."""
        targets = self.targets(batch, reward_factor)
        output = self.critic(self.critic.latent(batch.obs), batch.actions)
        loss = (cross_entropy_loss if self.critic.distributional else squared_loss)(output, targets, batch.weights)
        norm = self.critic_step(loss)
        # Target networks: theta' <- theta' + tau (theta - theta')
        with torch.no_grad():
            for behind, ahead in self._following:
                self._follow(behind, ahead, 1)
            self.meter.add(critic=loss, critic_gradient=norm, q=self.critic.values(output).mean())

    @torch.no_grad()
    def targets(self, batch: Transitions, reward_factor: torch.Tensor | float = 1.0) -> torch.Tensor:
        """Return what the Q functions are to predict: values, or distributions on the atoms."""
        actions, bonus = self.next_actions(batch.next_obs)
        following = self.target(self.target.latent(batch.next_obs), actions)
        rewards = batch.rewards * reward_factor
        if self.critic.distributional:
            return distribution_target(rewards, batch.discounts, following, self.critic.atoms, bonus)
        return td_target(rewards, batch.discounts, following, bonus)

    def actor_update(self, batch: Transitions, actor: Acts | None = None, step: GradientStep | None = None) -> None:
        """Take one step of the policy, or of other actors with the same critic.

        Args:
            batch: Transitions.
            actor: The actors. Defaults to None: the policy.
            step: Their optimizer. Defaults to None: the policy's.
        """
        # the critic only tells: nobody computes gradients of its weights
        self.critic.net.requires_grad_(False)
        loss = self.actor_loss(batch, actor or self.actor)
        self.critic.net.requires_grad_(True)
        (step or self.actor_step)(loss)
        self.meter.add(policy=loss)

    def policy_values(self, obs: TensorDict, unit: torch.Tensor) -> torch.Tensor:
        """Return the values of unit actions, shape (B,) for actions (B, A) and (P, B) for (P, B, A)."""
        latent = self.critic.latent(obs)
        if unit.dim() == 3:
            latent = latent.expand(len(unit), -1, -1).flatten(0, 1)
        output = self.critic(latent, unit.flatten(0, -2))
        return self._reduce(self.critic.values(output)).view(unit.shape[:-1])

    def noise(self, like: torch.Tensor) -> torch.Tensor:
        """Return standard normal numbers in the shape of unit actions of a network's output."""
        shape = (*like.shape[:-1], self.actor.distribution.output_dim)
        return torch.randn(shape, generator=self.generator, device=like.device)

    # --- state

    def modules(self) -> dict[str, torch.nn.Module]:
        """Return everything that is learned, by name, the policy left out."""
        return {"critic": self.critic, "target_critic": self.target.net}

    def steps(self) -> dict[str, GradientStep]:
        """Return the optimizers by name."""
        return {"critic_step": self.critic_step, "actor_step": self.actor_step}

    def parts(self) -> dict[str, Part]:
        """Return everything that a resumed run needs, the policy left out."""
        learned = {name: Part(module, learned=True) for name, module in self.modules().items()}
        return learned | {name: Part(step) for name, step in self.steps().items()}


class Meter:
    """Means of scalars over the gradient steps of an iteration, read once at its end."""

    def __init__(self) -> None:
        """Create the meter."""
        self._sums: dict[str, list[Any]] = {}

    def add(self, **values: torch.Tensor) -> None:
        """Take in scalars by name."""
        for name, value in values.items():
            total = self._sums.setdefault(name, [0.0, 0])
            total[0] = total[0] + value.detach()
            total[1] += 1

    def take(self) -> dict[str, float]:
        """Return the means, and begin anew."""
        if not self._sums:
            return {}
        means = torch.stack([total / count for total, count in self._sums.values()]).tolist()
        names = list(self._sums)
        self._sums = {}
        return dict(zip(names, means, strict=True))
