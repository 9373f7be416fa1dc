"""MLP, LSTM and GRU models that take the gene of the acting agent beside the observation.

The gene is appended to the *normalised* observation at the input of the network (before the recurrent layer). An
observation names its agent under the key ``agent_id``; without it the agent is the master, slot 0.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.modules import RNN
from rsl_rl.utils import unpad_trajectories
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from epo_lab.base.keys import AGENT_ID

from .distribution import AgentGaussianDistribution
from .normalization import make_normalization


class _Latent(MLPModel):
    """What the models share: a table of genes, or a reference to another model's."""

    genes: nn.Parameter | None
    """Genes of all agents, shape (K, L); None in a model that borrows them or has no agents."""

    export_agent: int = 0
    """Agent whose gene is baked into exported policies."""

    def __init__(
        self,
        *args: Any,
        genes: nn.Parameter | None = None,
        owns_genes: bool = True,
        moves_genes: bool = True,
        obs_clip: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Create the model.

        Args:
            args: Arguments of the rsl_rl model.
            genes: Table of genes; None makes the model a stock one.
            owns_genes: Whether the table is a parameter of this model. Exactly one model must own it: a parameter that
                two models register is stepped twice by the optimizer.
            moves_genes: Whether the model's loss has a gradient to the genes. Defaults to True.
            obs_clip: Largest absolute value of a normalised observation. Defaults to None: any, as in rsl_rl.
            kwargs: Arguments of the rsl_rl model.
        """
        self.gene_dim = 0 if genes is None else genes.shape[1]
        super().__init__(*args, **kwargs)
        if self.gene_dim:
            # as in the reference: with random biases agents begin nearly alike, whatever their genes
            for layer in self.mlp:
                if isinstance(layer, nn.Linear):
                    nn.init.zeros_(layer.bias)
        if self.obs_normalization:
            self.obs_normalizer = make_normalization(self.obs_dim, obs_clip)
        self.genes = genes if owns_genes else None
        # a tuple hides the parameter from torch's registration
        self._gene_table = (genes,)
        self._moves_genes = moves_genes

    def forward(
        self,
        obs: TensorDict,
        masks: torch.Tensor | None = None,
        hidden_state: Any = None,
        stochastic_output: bool = False,
    ) -> torch.Tensor:
        """Compute the output of every row with the gene of its agent."""
        if isinstance(self.distribution, AgentGaussianDistribution):
            ids = _agent_ids(obs)
            self.distribution.agent_ids = ids if ids is None or masks is None else unpad_trajectories(ids, masks)
        return super().forward(obs, masks, hidden_state, stochastic_output)

    def distribution_params(
        self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: Any = None
    ) -> tuple[torch.Tensor, ...]:
        """Return the parameters of the rows' distributions; nothing is drawn, and the last output stays what it was.

        Args:
            obs: Observations; with masks they have a time axis of one step.
            masks: None, or all true for a recurrent model that shall begin in ``hidden_state``.
            hidden_state: Recurrent state of every row.
        """
        distribution: Any = self.distribution
        kept = distribution._distribution
        if isinstance(distribution, AgentGaussianDistribution):
            ids = _agent_ids(obs)
            distribution.agent_ids = None if ids is None else ids.flatten()
        distribution.update(self.mlp(self.get_latent(obs, masks, hidden_state)))
        params = tuple(self.output_distribution_params)
        distribution._distribution = kept
        return params

    def _genes(self) -> torch.Tensor | None:
        """Return the table of genes that this model takes, with or without a gradient."""
        table = self._gene_table[0]
        return table if table is None or self._moves_genes else table.detach()

    def exported_gene(self) -> torch.Tensor | None:
        """Return the gene that exported policies carry."""
        table = self._gene_table[0]
        return None if table is None else table[self.export_agent].detach()


class GeneLinear(nn.Module):
    """The first layer, W [x, z] + b, computed as W_x x + (W_z z + b).

    The second part is the same for all rows of an agent, so it is computed once for each; and the gradient goes to the
    genes alone, not to the observations beside them. Next to a linear layer on [x, z] that saves nearly half the time.
    """

    def __init__(self, whole: nn.Linear) -> None:
        """Take over the parameters of a linear layer on [x, z]."""
        super().__init__()
        self.weight, self.bias = whole.weight, whole.bias

    def forward(self, inputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]) -> torch.Tensor:
        """Return the output for observations, the table of genes and the agents of the rows (None: the master)."""
        latent, genes, ids = inputs
        split = latent.shape[-1]
        shares = functional.linear(genes, self.weight[:, split:], self.bias)
        # Note: an embedding sorts its rows before it adds up gradients, so that they are the same every time on CUDA
        rows = shares[0] if ids is None else functional.embedding(ids, shares)
        return functional.linear(latent, self.weight[:, :split]).add_(rows)


class LatentMLPModel(_Latent):
    """rsl_rl's MLP model with a gene at its input."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the model; see :class:`rsl_rl.models.MLPModel`."""
        super().__init__(*args, **kwargs)
        if self.gene_dim:
            self.mlp[0] = GeneLinear(self.mlp[0])

    def get_latent(self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: Any = None) -> Any:
        """Return the input of the network: normalised observations and, with agents, what :class:`GeneLinear` takes."""
        latent = super().get_latent(obs, masks, hidden_state)
        table = self._genes()
        return latent if table is None else (latent, table, _agent_ids(obs))

    def as_jit(self) -> nn.Module:
        """Return an exportable policy that takes plain observations."""
        return _fold_mlp(super().as_jit(), self.exported_gene())

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return an exportable policy that takes plain observations."""
        return _fold_mlp(super().as_onnx(verbose), self.exported_gene())

    def _get_latent_dim(self) -> int:
        return self.obs_dim + self.gene_dim


class LatentRNNModel(_Latent, RNNModel):
    """rsl_rl's recurrent model with a gene at its input and, if asked for, a layer norm behind the recurrent layer."""

    def __init__(
        self,
        *args: Any,
        rnn_type: str = "lstm",
        rnn_hidden_dim: int = 256,
        rnn_num_layers: int = 1,
        rnn_layer_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        """Create the model; see :class:`rsl_rl.models.RNNModel`.

        Args:
            args: Arguments of the rsl_rl model.
            rnn_type: ``lstm`` or ``gru``.
            rnn_hidden_dim: Size of the recurrent layers.
            rnn_num_layers: Number of recurrent layers.
            rnn_layer_norm: Whether the recurrent output is layer-normalised, as in the reference.
            kwargs: Arguments of the rsl_rl model and of the genes.
        """
        super().__init__(
            *args, rnn_type=rnn_type, rnn_hidden_dim=rnn_hidden_dim, rnn_num_layers=rnn_num_layers, **kwargs
        )
        if self.gene_dim:
            self.rnn = RNN(self.obs_dim + self.gene_dim, rnn_hidden_dim, rnn_num_layers, rnn_type)
        if rnn_layer_norm:
            # inside the head, so that rsl_rl's export carries it along
            self.mlp = nn.Sequential(nn.LayerNorm(rnn_hidden_dim), self.mlp)

    def get_latent(self, obs: TensorDict, masks: torch.Tensor | None = None, hidden_state: Any = None) -> torch.Tensor:
        """Return the recurrent output for normalised observations and genes."""
        latent, table = MLPModel.get_latent(self, obs), self._genes()
        if table is not None:
            ids = _agent_ids(obs)
            genes = table[0].expand(*latent.shape[:-1], -1) if ids is None else functional.embedding(ids, table)
            latent = torch.cat([latent, genes], dim=-1)
        return self.rnn(latent, masks, hidden_state).squeeze(0)

    def as_jit(self) -> nn.Module:
        """Return an exportable policy that takes plain observations."""
        return _fold_rnn(super().as_jit(), self.exported_gene())

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return an exportable policy that takes plain observations."""
        return _fold_rnn(super().as_onnx(verbose), self.exported_gene())


def _agent_ids(obs: TensorDict) -> torch.Tensor | None:
    ids = obs.get(AGENT_ID, None)
    return None if ids is None else ids.squeeze(-1)


def _fold_mlp(exported: nn.Module, gene: torch.Tensor | None) -> nn.Module:
    """Move the gene's part of the first layer into its bias: W [x, z] + b = W_x x + (b + W_z z)."""
    if gene is None:
        return exported
    first = exported.mlp[0]
    plain = nn.Linear(first.weight.shape[1] - len(gene), first.weight.shape[0])
    with torch.no_grad():
        plain.weight.copy_(first.weight[:, : -len(gene)])
        plain.bias.copy_(first.bias + first.weight[:, -len(gene) :] @ gene)
    exported.mlp[0] = plain
    return exported


def _fold_rnn(exported: nn.Module, gene: torch.Tensor | None) -> nn.Module:
    """Move the gene's part of the recurrent layer's input weights into its input bias."""
    if gene is None:
        return exported
    rnn = exported.rnn
    plain = type(rnn)(rnn.input_size - len(gene), rnn.hidden_size, rnn.num_layers)
    state = copy.deepcopy(rnn.state_dict())
    weights = state["weight_ih_l0"]
    state["bias_ih_l0"] = state["bias_ih_l0"] + weights[:, -len(gene) :] @ gene
    state["weight_ih_l0"] = weights[:, : -len(gene)]
    plain.load_state_dict(state)
    exported.rnn = plain
    return exported
