"""Several networks of the same shape as one: their weights are stacked, so that one batched product serves all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from rsl_rl.utils import resolve_nn_activation
from torch import nn
from torch.nn import functional


class StackedMLP(nn.Module):
    """``number`` MLPs side by side, such as the two Q functions."""

    def __init__(
        self,
        number: int,
        input_dim: int,
        output_dim: int,
        hidden_dims: Sequence[int],
        activation: str = "relu",
        layer_norm: bool = False,
    ) -> None:
        """Create the networks, each drawn as torch's linear layers are.

        Args:
            number: Number of networks E.
            input_dim: Size of the input.
            output_dim: Size of the output.
            hidden_dims: Sizes of the hidden layers.
            activation: Activation of the hidden layers, by rsl_rl's name.
            layer_norm: Whether hidden layers are layer-normalised before their activation.
        """
        super().__init__()
        self.number = number
        sizes = [input_dim, *hidden_dims, output_dim]
        self.weights = nn.ParameterList()
        """Weights of the layers, each of shape (E, in, out)."""
        self.biases = nn.ParameterList()
        """Biases of the layers, each of shape (E, 1, out)."""
        for size, size_out in itertools.pairwise(sizes):
            bound = 1.0 / math.sqrt(size)
            self.weights.append(nn.Parameter(torch.empty(number, size, size_out).uniform_(-bound, bound)))
            self.biases.append(nn.Parameter(torch.empty(number, 1, size_out).uniform_(-bound, bound)))
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        for size in hidden_dims if layer_norm else ():
            self.gains.append(nn.Parameter(torch.ones(number, 1, size)))
            self.shifts.append(nn.Parameter(torch.zeros(number, 1, size)))
        self.activation = resolve_nn_activation(activation)
        save_memory(self.activation)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the outputs of all networks, shape (E, B, out).

        Args:
            inputs: Either the same rows for all networks, shape (B, in), or rows for each, shape (E, B, in).
        """
        hidden = inputs.expand(self.number, -1, -1) if inputs.dim() == 2 else inputs
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden, weight)
            if layer == last:
                break
            if len(self.gains):
                hidden = functional.layer_norm(hidden, hidden.shape[-1:])
                hidden = torch.addcmul(self.shifts[layer], hidden, self.gains[layer])
            hidden = self.activation(hidden)
        return hidden


def save_memory(activation: nn.Module) -> None:
    """Let an activation whose gradient follows from its output write over its input, which saves memory traffic."""
    if isinstance(activation, nn.ReLU | nn.ELU):
        activation.inplace = True
