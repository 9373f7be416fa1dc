"""Soft Actor-Critic: a squashed Gaussian policy that keeps its entropy."""

from __future__ import annotations

import math
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn

from epo_lab.models.squashed import SquashedGaussian
from epo_lab.storage.replay import Transitions

from .algorithm import OffPolicy
from .exploration import RepeatedNoise
from .gradient import GradientStep
from .learner import Acts, Learner
from .losses import policy_loss, temperature_loss
from .options import SacOptions


class Temperature(nn.Module):
    """Weight alpha of the entropy, in log form."""

    def __init__(self, initial: float) -> None:
        """Create it with a first value."""
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(initial)))

    @property
    def value(self) -> torch.Tensor:
        """The temperature, without a gradient."""
        return self.log.detach().exp()


class SacLearner(Learner):
    """Gradient steps of SAC."""

    options: SacOptions

    def __init__(self, actor: Any, critic: Any, options: SacOptions, generator: torch.Generator) -> None:
        """Take networks and options; see :class:`~.learner.Learner`."""
        super().__init__(actor, critic, options, generator)
        settings = options.temperature
        self.temperature = Temperature(settings.initial).to(critic.atoms.device)
        self.temperature_step = GradientStep(self.temperature.parameters(), settings.learning_rate)
        self.target_entropy = settings.target_entropy * actor.distribution.output_dim
        """Entropy that the policy keeps."""

    def next_actions(self, obs: TensorDict) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw from the present policy; the bonus is -alpha log pi(a' | s')."""
        output = self.actor.output(obs)
        unit, log_prob = self.actor.distribution.draw(output, self.noise(output))
        return unit, -self.temperature.value * log_prob

    def actor_loss(self, batch: Transitions, actor: Acts) -> torch.Tensor:
        """Return alpha log pi(a | s) - Q(s, a), and adapt the temperature to the policy's entropy."""
        # Policy loss: alpha log pi(a | s) - Q(s, a) with a drawn by reparametrisation (SAC eq. 7)
        output = actor.output(batch.obs)
        unit, log_prob = actor.distribution.draw(output, self.noise(output))
        values = self.policy_values(batch.obs, unit)
        loss = policy_loss(values, batch.weights, self.temperature.value * log_prob)
        # Temperature: towards an entropy of target_entropy (SAC eq. 18)
        if self.options.temperature.learned and actor is self.actor:
            self.temperature_step(temperature_loss(self.temperature.log, log_prob, self.target_entropy, batch.weights))
        self.meter.add(entropy=-log_prob.mean(), temperature=self.temperature.value)
        return loss

    def modules(self) -> dict[str, nn.Module]:
        """Return everything that is learned, the policy left out."""
        return super().modules() | {"temperature": self.temperature}

    def steps(self) -> dict[str, GradientStep]:
        """Return the optimizers."""
        return super().steps() | {"temperature_step": self.temperature_step}


class SAC(OffPolicy):
    """Soft Actor-Critic with the means of today: n-step returns, distributional critics, scaled rewards."""

    options_class = SacOptions
    output_class = SquashedGaussian
    learner_class = SacLearner
    learner: SacLearner
    options: SacOptions

    @staticmethod
    def output_settings(options: SacOptions) -> dict[str, Any]:
        """Return the range of the standard deviation."""
        return {name: getattr(options.gaussian, name) for name in ("init_std", "log_std_min", "log_std_max")}

    @staticmethod
    def make_exploration(
        options: SacOptions, num_envs: int, num_actions: int, generator: torch.Generator
    ) -> RepeatedNoise:
        """Return the noise of the environments."""
        return RepeatedNoise(num_envs, num_actions, generator, repeat=options.gaussian.repeat)

    def explore(self, obs: TensorDict) -> torch.Tensor:
        """Draw from the policy."""
        return self.actor.distribution.draw(self.actor.output(obs), self.exploration.draw())[0]
