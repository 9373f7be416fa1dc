"""Several networks of the same shape as one: their weights are stacked, so that one batched product serves all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from rsl_rl.utils import resolve_nn_activation
from torch import nn
from torch.nn import functional

ONE_DNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
"""Whether torch has oneDNN's products. On AMD's cores they are twice as fast as those of the BLAS that torch brings."""
LARGE = 2**21
"""Multiplications of a network's layer from which on oneDNN is worth its calls."""


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
            hidden = _linear(bias, hidden, weight)
            if layer == last:
                break
            if len(self.gains):
                hidden = functional.layer_norm(hidden, hidden.shape[-1:])
                hidden = torch.addcmul(self.shifts[layer], hidden, self.gains[layer])
            hidden = self.activation(hidden)
        return hidden


def _linear(biases: torch.Tensor, inputs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return inputs @ weights + biases of every network."""
    large = inputs.shape[1] * weights[0].numel() >= LARGE
    if ONE_DNN and large and inputs.device.type == "cpu" and inputs.dtype == torch.float32:
        return _OneDnn.apply(biases, inputs, weights)
    return torch.baddbmm(biases, inputs, weights)


class _OneDnn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, biases: torch.Tensor, inputs: torch.Tensor, weights: torch.Tensor) -> Any:
        ctx.save_for_backward(inputs, weights)
        return _products(inputs, weights.mT, biases[:, 0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> Any:
        inputs, weights = ctx.saved_tensors
        needs_biases, needs_inputs, needs_weights = ctx.needs_input_grad
        return (
            gradients.sum(dim=1, keepdim=True) if needs_biases else None,
            _products(gradients, weights) if needs_inputs else None,
            _products(inputs.mT, gradients.mT) if needs_weights else None,
        )


def _products(rows: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor | None = None) -> torch.Tensor:
    """Return rows @ weights^T + biases of every network."""
    linear = torch.ops.mkldnn._linear_pointwise
    shifts = itertools.repeat(None) if biases is None else biases
    return torch.stack([linear(*one, "none", [], "") for one in zip(rows, weights, shifts, strict=False)])


def save_memory(activation: nn.Module) -> None:
    """Let an activation whose gradient follows from its output write over its input, which saves memory traffic."""
    if isinstance(activation, nn.ReLU | nn.ELU):
        activation.inplace = True
