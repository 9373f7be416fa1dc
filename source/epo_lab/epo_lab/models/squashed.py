"""Policies with bounded actions: a tanh at the end, then the scale of the action bounds.

Learning happens with unit actions within (-1, 1), which the replay stores and the Q functions see; the environment
gets them scaled to its bounds. What is exported contains both tanh and scale.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules.distribution import Distribution
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from epo_lab.base.errors import UserError

from .normalization import make_normalization
from .stacked import save_memory

ActionBounds = float | list[float] | list[list[float]]
"""One number b for +-b, one for every action, or a pair (low, high) for every action."""


def action_range(bounds: ActionBounds, num_actions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lower and upper bound of every action. Shapes are (A,)."""
    try:
        values = torch.tensor(bounds, dtype=torch.float32)
    except (TypeError, ValueError):
        values = torch.empty(0)
    if values.dim() <= 1 and values.numel() in (1, num_actions):
        high = values.abs().expand(num_actions).clone()
        low = -high
    elif values.shape == (num_actions, 2):
        low, high = values.unbind(dim=1)
    else:
        raise UserError(
            f"action_bounds {bounds} does not fit {num_actions} actions: give one number, {num_actions} numbers or"
            f" {num_actions} pairs [low, high]"
        )
    if not bool((high > low).all() and values.isfinite().all()):
        raise UserError(f"action_bounds {bounds}: every upper bound must be finite and above the lower one")
    return low, high


def squash(mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit actions tanh(u), u = mean + std * noise, and their log-probabilities.

    Args:
        mean: Mean of the Gaussian. Shape is (..., A).
        log_std: Logarithm of its standard deviation. Shape is (..., A).
        noise: Standard normal numbers. Shape is (..., A).
    """
    pre = torch.addcmul(mean, log_std.exp(), noise)
    # Change of variables (SAC, appendix C): log pi = log N(u) - sum log(1 - tanh(u)^2), where
    # log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)) does not cancel for large u
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
    slope = 2.0 * (math.log(2.0) - pre - functional.softplus(-2.0 * pre))
    return pre.tanh(), (gaussian - slope).sum(dim=-1)


class BoundedOutput(Distribution):
    """A deterministic output: tanh, then the scale of the action bounds."""

    per_action = 1
    """Numbers that the network gives for each action."""

    def __init__(self, output_dim: int, bounds: ActionBounds = 1.0) -> None:
        """Create the output.

        Args:
            output_dim: Number of actions.
            bounds: Bounds of the actions.
        """
        super().__init__(output_dim)
        low, high = action_range(bounds, output_dim)
        self.register_buffer("scale", 0.5 * (high - low))
        self.register_buffer("offset", 0.5 * (high + low))
        self.last_std = torch.zeros(output_dim)
        """Standard deviation of the last exploration, in unit actions; for the log."""

    @property
    def input_dim(self) -> int:
        """Size of the network's output."""
        return self.per_action * self.output_dim

    @property
    def std(self) -> torch.Tensor:
        """Standard deviation of the last exploration."""
        return self.last_std

    def unit(self, output: torch.Tensor) -> torch.Tensor:
        """Return the deterministic unit actions of a network's output."""
        return output[..., : self.output_dim].tanh()

    def to_env(self, unit: torch.Tensor) -> torch.Tensor:
        """Return unit actions in the units of the environment."""
        return torch.addcmul(self.offset, unit, self.scale)

    def deterministic_output(self, mlp_output: torch.Tensor) -> torch.Tensor:
        """Return the deterministic actions of a network's output."""
        return self.to_env(self.unit(mlp_output))

    def as_deterministic_output_module(self) -> nn.Module:
        """Return the same for an exported policy."""
        return _BoundedMean(self.scale, self.offset, self.output_dim)


class SquashedGaussian(BoundedOutput):
    """A Gaussian through a tanh, whose standard deviation depends on the state."""

    per_action = 2

    def __init__(
        self,
        output_dim: int,
        bounds: ActionBounds = 1.0,
        init_std: float = 1.0,
        log_std_min: float = -5.0,
        log_std_max: float = 2.0,
    ) -> None:
        """Create the output.

        Args:
            output_dim: Number of actions.
            bounds: Bounds of the actions.
            init_std: First standard deviation, before the tanh.
            log_std_min: Least logarithm of the standard deviation.
            log_std_max: Largest one.
        """
        super().__init__(output_dim, bounds)
        self.middle, self.half = 0.5 * (log_std_max + log_std_min), 0.5 * (log_std_max - log_std_min)
        self.init_std = init_std
        self.last_std = torch.full((output_dim,), init_std)

    def init_mlp_weights(self, mlp: nn.Module) -> None:
        """Let the standard deviation be the first one in every state."""
        share = (math.log(self.init_std) - self.middle) / self.half
        with torch.no_grad():
            mlp[-1].weight[self.output_dim :].zero_()
            mlp[-1].bias[self.output_dim :].fill_(math.atanh(max(-0.999, min(0.999, share))))

    def mean_and_log_std(self, output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the Gaussian of a network's output; the standard deviation stays in its range smoothly."""
        mean, raw = output.chunk(2, dim=-1)
        return mean, self.middle + self.half * raw.tanh()

    def draw(self, output: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return unit actions and their log-probabilities.

        Args:
            output: Output of the network.
            noise: Standard normal numbers. Shape is (..., A).
        """
        mean, log_std = self.mean_and_log_std(output)
        self.last_std = log_std.detach().exp()
        return squash(mean, log_std, noise)


class BoundedActor(MLPModel):
    """An MLP whose actions are bounded; ``forward`` is what is played, deterministic and scaled."""

    distribution: Any

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        *,
        output: type[BoundedOutput] = BoundedOutput,
        output_settings: dict[str, Any] | None = None,
        obs_clip: float | None = None,
        **settings: Any,
    ) -> None:
        """Create the model.

        Args:
            obs: An observation.
            obs_groups: Groups of observations by set.
            obs_set: Set that the model sees.
            output_dim: Number of actions.
            output: Class of the output.
            output_settings: Arguments of that class.
            obs_clip: Largest absolute value of a normalised observation. Defaults to None: any.
            settings: Arguments of rsl_rl's MLP model.
        """
        cfg = {"class_name": output, **(output_settings or {})}
        super().__init__(obs, obs_groups, obs_set, output_dim, distribution_cfg=cfg, **settings)
        if self.obs_normalization:
            self.obs_normalizer = make_normalization(self.obs_dim, obs_clip)
        for layer in self.mlp:
            save_memory(layer)

    def output(self, obs: TensorDict) -> torch.Tensor:
        """Return what the network says before its tanh."""
        return self.mlp(self.get_latent(obs))


class _BoundedMean(nn.Module):
    """Deterministic actions of an exported policy."""

    def __init__(self, scale: torch.Tensor, offset: torch.Tensor, size: int) -> None:
        super().__init__()
        self.register_buffer("scale", scale.detach().clone())
        self.register_buffer("offset", offset.detach().clone())
        self.size = size

    def forward(self, mlp_output: torch.Tensor) -> torch.Tensor:
        return mlp_output[..., : self.size].tanh() * self.scale + self.offset
