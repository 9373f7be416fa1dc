"""A population of policies as one network with stacked weights: a single call acts for all members.

All weights are views of one table with a row a member, so that evolution reads and writes policies as rows of numbers.
``torch.func.vmap`` has no rule for LSTM and GRU, so the layers are written out as batched matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from epo_lab.base.errors import UserError

Step = tuple[Callable[..., torch.Tensor], list[Any]]
"""A function of the members' inputs and stacked parameters, and the parameters of one member that it takes."""


class StackedPolicies:
    """Deterministic policies of n members, each with weights of its own; observations are normalised alike for all."""

    def __init__(
        self, template: MLPModel, num_members: int, agent_ids: torch.Tensor, slots: range | None = None
    ) -> None:
        """Stack copies of a model.

        Args:
            template: An MLP or recurrent model. All members begin with its weights and share its normaliser.
            num_members: Number of members n.
            agent_ids: Member of every environment; all that act here have equally many. Shape is (num_envs,).
            slots: Members that act here, if processes divide them. Defaults to None: all.
        """
        self._slots = slots or range(num_members)
        self._template = template
        self._steps, self._recurrent = list(_steps(template.mlp)), _recurrent(template)
        self._parameters = list(network_parameters(template))
        self.rows = flatten(self._parameters).repeat(num_members, 1)
        """Parameters of all members; a change of a row changes the policy. Shape is (n, D)."""
        self._shape = (len(self._slots), len(agent_ids) // len(self._slots))
        self._hidden: torch.Tensor | None = None
        if self._recurrent is not None:
            cells = _STATES[type(self._recurrent)]
            size = (cells, self._recurrent.num_layers, *self._shape, self._recurrent.hidden_size)
            self._hidden = torch.zeros(size, device=agent_ids.device)
        self.assign(agent_ids)

    def assign(self, agent_ids: torch.Tensor) -> None:
        """Give every environment its member."""
        # Environments in the order of their members, and back
        self._order = torch.sort(agent_ids, stable=True).indices
        self._back = torch.sort(self._order).indices

    @property
    def distribution(self) -> Any:
        """What makes actions of the networks' outputs."""
        return self._template.distribution

    @property
    def num_parameters(self) -> int:
        """Length D of a row."""
        return self.rows.shape[1]

    @property
    def shapes(self) -> list[torch.Size]:
        """Shapes of the parameters that a row is made of, in their order."""
        return [parameter.shape for parameter in self._parameters]

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        """Return the action of every environment's member, and go on with the recurrent states."""
        outputs = self.act_outputs(obs)
        return outputs if self.distribution is None else self.distribution.deterministic_output(outputs)

    def act_outputs(self, obs: TensorDict) -> torch.Tensor:
        """Return what its member's network says in every environment. Shape is (num_envs, out)."""
        inputs = MLPModel.get_latent(self._template, obs)
        rows = self.rows[self._slots.start : self._slots.stop]
        outputs = self.network(rows, inputs[self._order].view(*self._shape, -1), self._hidden)
        return outputs.flatten(0, 1)[self._back]

    def network(self, rows: torch.Tensor, inputs: torch.Tensor, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """Return what the members' networks say, before their actions are bounded. Shape is (n, batch, out).

        Args:
            rows: Parameters, a row a member. Shape is (n, D).
            inputs: Normalised observations of every member. Shape is (n, batch, obs_dim).
            hidden: Recurrent states, which are overwritten; None for a model without.
        """
        weights = iter(unflatten(rows, self.shapes))
        if self._recurrent is not None:
            inputs = _CELLS[type(self._recurrent)](inputs, hidden, weights)
        for function, parameters in self._steps:
            inputs = function(inputs, *(next(weights) for _ in parameters))
        return inputs

    def reset(self, dones: torch.Tensor | None = None) -> None:
        """Forget the recurrent states of environments whose episode ended; without an argument, all."""
        if self._hidden is None:
            return
        if dones is None:
            self._hidden.zero_()
        else:
            goes_on = 1.0 - dones[self._order].view(*self._shape, 1).to(self._hidden.dtype)
            self._hidden *= goes_on

    def state_dict(self) -> torch.Tensor | None:
        """Return the recurrent states."""
        return None if self._hidden is None else self._hidden.clone()

    def load_state_dict(self, state: torch.Tensor | None) -> None:
        """Restore what :meth:`state_dict` returned."""
        if self._hidden is not None:
            self._hidden.copy_(state)


class StackedGenome:
    """Stacked policies as a genome: a row holds everything that a member is."""

    def __init__(self, policies: StackedPolicies) -> None:
        """Take the policies."""
        self._policies = policies

    def read(self, slots: Any = None) -> torch.Tensor:
        """Return the parameters of some members, or of all, on the CPU. Shape is (n, D)."""
        rows = self._policies.rows.cpu()
        return rows.clone() if slots is None else rows[list(slots)]

    def write(self, slots: Any, rows: torch.Tensor) -> None:
        """Replace the parameters of some members."""
        self._policies.rows[list(slots)] = rows.to(self._policies.rows)

    def inherit(self, slot: int, parents: Any) -> None:
        """Nothing: a row is all there is."""

    def swap(self, first: int, second: int) -> None:
        """Let two members change places."""
        self._policies.rows[[first, second]] = self._policies.rows[[second, first]]

    def state_dict(self) -> torch.Tensor:
        """Return the parameters of all members."""
        return self._policies.rows.clone()

    def load_state_dict(self, state: torch.Tensor) -> None:
        """Restore what :meth:`state_dict` returned."""
        self._policies.rows.copy_(state)


def network_parameters(model: MLPModel) -> Iterator[nn.Parameter]:
    """Return the parameters that decide a model's deterministic actions, in the order of a row."""
    recurrent = _recurrent(model)
    if recurrent is not None:
        yield from recurrent.parameters()
    for _, parameters in _steps(model.mlp):
        yield from parameters


def flatten(parameters: list[nn.Parameter]) -> torch.Tensor:
    """Return parameters as one row. Shape is (D,)."""
    return torch.cat([parameter.detach().flatten() for parameter in parameters])


def unflatten(rows: torch.Tensor, shapes: list[torch.Size]) -> list[torch.Tensor]:
    """Return views of rows in the shapes of the parameters, each with the members first."""
    pieces = rows.split([prod(shape) for shape in shapes], dim=1)
    return [piece.view(len(rows), *shape) for piece, shape in zip(pieces, shapes, strict=True)]


@torch.no_grad()
def write_row(row: torch.Tensor, parameters: list[nn.Parameter]) -> None:
    """Copy a row into the parameters of a model."""
    for parameter, value in zip(parameters, unflatten(row.unsqueeze(0), [p.shape for p in parameters]), strict=True):
        parameter.copy_(value[0])


# --- layers, for all members at once: inputs (n, batch, in), weights (n, out, in), biases (n, out)


def _linear(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))


def _layer_norm(size: Any, epsilon: float) -> Callable[..., torch.Tensor]:
    def apply(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        normalised = functional.layer_norm(inputs, size, eps=epsilon)
        return torch.addcmul(bias.unsqueeze(1), normalised, weight.unsqueeze(1))

    return apply


def _steps(module: nn.Module) -> Iterator[Step]:
    """Return what a feed-forward network does, layer by layer."""
    if isinstance(module, nn.Sequential):
        for layer in module:
            yield from _steps(layer)
    elif isinstance(module, nn.Linear) and module.bias is not None:
        yield _linear, [module.weight, module.bias]
    elif isinstance(module, nn.LayerNorm) and module.elementwise_affine:
        yield _layer_norm(module.normalized_shape, module.eps), [module.weight, module.bias]
    elif not list(module.parameters()):
        # an activation: the same for everybody
        yield module, []
    else:
        raise UserError(
            f"a population of policies cannot be stacked from {type(module).__name__}: use MLPs, LSTM or GRU"
        )


def _recurrent(model: Any) -> nn.LSTM | nn.GRU | None:
    return model.rnn.rnn if model.is_recurrent else None


def _lstm(inputs: torch.Tensor, hidden: torch.Tensor, weights: Iterator[torch.Tensor]) -> torch.Tensor:
    """Return the output of the last layer and go on with the states. Their shape is (2, layers, n, batch, size)."""
    for layer in range(hidden.shape[1]):
        w_in, w_state, b_in, b_state = (next(weights) for _ in range(4))
        state, cell = hidden[0, layer], hidden[1, layer]
        gates = _linear(inputs, w_in, b_in) + _linear(state, w_state, b_state)
        take, forget, new, give = gates.chunk(4, dim=-1)
        cell.copy_(forget.sigmoid() * cell + take.sigmoid() * new.tanh())
        state.copy_(give.sigmoid() * cell.tanh())
        inputs = state
    return inputs


def _gru(inputs: torch.Tensor, hidden: torch.Tensor, weights: Iterator[torch.Tensor]) -> torch.Tensor:
    """Return the output of the last layer and go on with the states. Their shape is (1, layers, n, batch, size)."""
    for layer in range(hidden.shape[1]):
        w_in, w_state, b_in, b_state = (next(weights) for _ in range(4))
        state = hidden[0, layer]
        reset_in, update_in, new_in = _linear(inputs, w_in, b_in).chunk(3, dim=-1)
        reset_state, update_state, new_state = _linear(state, w_state, b_state).chunk(3, dim=-1)
        reset, update = (reset_in + reset_state).sigmoid(), (update_in + update_state).sigmoid()
        new = (new_in + reset * new_state).tanh()
        state.copy_((1.0 - update) * new + update * state)
        inputs = state
    return inputs


_CELLS: dict[type, Callable[..., torch.Tensor]] = {nn.LSTM: _lstm, nn.GRU: _gru}
_STATES = {nn.LSTM: 2, nn.GRU: 1}
"""State tensors of a recurrent layer."""
