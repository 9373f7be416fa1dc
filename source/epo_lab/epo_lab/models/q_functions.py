"""Twin Q functions: scalar, or distributions over a fixed support (C51)."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from tensordict import TensorDict
from torch import nn

from .normalization import make_normalization
from .stacked import StackedMLP


class QFunctions(nn.Module):
    """Two Q functions of normalised observations and unit actions, computed together."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: Sequence[str],
        num_actions: int,
        *,
        hidden_dims: Sequence[int],
        activation: str = "relu",
        layer_norm: bool = False,
        num_atoms: int = 1,
        value_range: float = 5.0,
        obs_normalization: bool = False,
        obs_clip: float | None = None,
        number: int = 2,
    ) -> None:
        """Create the functions.

        Args:
            obs: An observation.
            obs_groups: Groups of observations that are seen.
            num_actions: Number of actions.
            hidden_dims: Sizes of the hidden layers.
            activation: Activation of the hidden layers.
            layer_norm: Whether hidden layers are layer-normalised.
            num_atoms: Atoms of a distribution; 1 makes the functions scalar.
            value_range: The atoms are spread evenly over plus and minus this value.
            obs_normalization: Whether observations are normalised.
            obs_clip: Largest absolute value of a normalised observation. Defaults to None: any.
            number: Number of functions.
        """
        super().__init__()
        self.obs_groups = list(obs_groups)
        self.obs_dim = sum(obs[name].shape[-1] for name in self.obs_groups)
        self.obs_normalizer: nn.Module = nn.Identity()
        self._normalizes = obs_normalization
        if obs_normalization:
            self.obs_normalizer = make_normalization(self.obs_dim, obs_clip)
        self.net = StackedMLP(number, self.obs_dim + num_actions, num_atoms, hidden_dims, activation, layer_norm)
        self.num_atoms = num_atoms
        self.atoms: torch.Tensor
        self.register_buffer("atoms", torch.linspace(-value_range, value_range, num_atoms), persistent=False)

    @property
    def distributional(self) -> bool:
        """Whether the functions are distributions."""
        return self.num_atoms > 1

    def latent(self, obs: TensorDict) -> torch.Tensor:
        """Return the normalised observations."""
        return self.obs_normalizer(torch.cat([obs[name] for name in self.obs_groups], dim=-1))

    def forward(self, latent: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return values, shape (2, B), or the logits of distributions, shape (2, B, atoms).

        Args:
            latent: What :meth:`latent` returned.
            actions: Unit actions.
        """
        output = self.net(torch.cat([latent, actions], dim=-1))
        return output if self.distributional else output.squeeze(-1)

    def values(self, output: torch.Tensor) -> torch.Tensor:
        """Return the values of what :meth:`forward` returned. Shape is (2, B)."""
        return (output.softmax(dim=-1) * self.atoms).sum(dim=-1) if self.distributional else output

    def update_normalization(self, obs: TensorDict) -> None:
        """Take in a batch of observations."""
        if self._normalizes:
            self.obs_normalizer.update(torch.cat([obs[name] for name in self.obs_groups], dim=-1))

    def make_target(self) -> QFunctions:
        """Return a copy that learns by following; it normalises as this one does, and never changes how."""
        target = copy.deepcopy(self)
        target.obs_normalizer = self.obs_normalizer
        target.net.requires_grad_(False)
        return target
