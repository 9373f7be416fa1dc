"""TD3: a deterministic policy with noise; with PQL's settings it is PQL's learning rule."""

from __future__ import annotations

import copy
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn

from epo_lab.models.squashed import BoundedOutput
from epo_lab.storage.replay import Transitions

from .algorithm import OffPolicy
from .exploration import SpreadNoise
from .learner import Acts, Learner
from .losses import policy_loss
from .options import Td3Options


class Td3Learner(Learner):
    """Gradient steps of TD3."""

    options: Td3Options

    def __init__(self, actor: Any, critic: Any, options: Td3Options, generator: torch.Generator) -> None:
        """Take networks and options; see :class:`~.learner.Learner`."""
        super().__init__(actor, critic, options, generator)
        self.target_actor = actor
        """The policy that targets come from."""
        if options.target_actor:
            self.target_actor = copy.deepcopy(actor)
            # it normalises as the policy does, and never changes how
            self.target_actor.obs_normalizer = actor.obs_normalizer
            self.target_actor.mlp.requires_grad_(False)
            self._following.append((list(self.target_actor.mlp.parameters()), list(actor.mlp.parameters())))

    def next_actions(self, obs: TensorDict) -> tuple[torch.Tensor, float]:
        """Return the target policy's actions with clipped noise (TD3 eq. 14)."""
        # Target policy smoothing: a' = clip(pi'(s') + clip(noise, -c, c), -1, 1)
        output = self.target_actor.output(obs)
        noise = self.options.noise
        smooth = (noise.target_std * self.noise(output)).clamp(-noise.target_clip, noise.target_clip)
        return (self.target_actor.distribution.unit(output) + smooth).clamp(-1.0, 1.0), 0.0

    def actor_loss(self, batch: Transitions, actor: Acts) -> torch.Tensor:
        """Return -Q(s, pi(s)) (deterministic policy gradient)."""
        unit = actor.distribution.unit(actor.output(batch.obs))
        return policy_loss(self.policy_values(batch.obs, unit), batch.weights)

    def modules(self) -> dict[str, nn.Module]:
        """Return everything that is learned, the policy left out."""
        own = {"target_actor": self.target_actor.mlp} if self.options.target_actor else {}
        return super().modules() | own


class TD3(OffPolicy):
    """Twin delayed deterministic policy gradients, with noise of another size in every environment."""

    options_class = Td3Options
    output_class = BoundedOutput
    learner_class = Td3Learner
    learner: Td3Learner
    options: Td3Options
    exploration: SpreadNoise

    @staticmethod
    def make_exploration(
        options: Td3Options, num_envs: int, num_actions: int, generator: torch.Generator
    ) -> SpreadNoise:
        """Return the noise of the environments."""
        noise = options.noise
        return SpreadNoise(
            num_envs, num_actions, generator, std_min=noise.std_min, std_max=noise.std_max, spread=noise.spread
        )

    def explore(self, obs: TensorDict) -> torch.Tensor:
        """Return the policy's actions with noise."""
        self.actor.distribution.last_std = self.exploration.std
        unit = self.actor.distribution.unit(self.actor.output(obs))
        return (unit + self.exploration.draw()).clamp(-1.0, 1.0)
