"""A Gaussian whose standard deviation belongs to the agent that acts."""

from __future__ import annotations

import math

import torch
from rsl_rl.modules.distribution import GaussianDistribution
from torch import nn
from torch.distributions import Normal
from torch.nn import functional


class AgentGaussianDistribution(GaussianDistribution):
    """State-independent standard deviations, one row for each agent, in log form."""

    def __init__(
        self,
        output_dim: int,
        num_agents: int = 1,
        init_std: float = 1.0,
        std_range: tuple[float, float] = (1e-6, 1e6),
        std_type: str = "log",
        learn_std: bool = True,
    ) -> None:
        """Create the table; ``std_type`` is accepted for the configs' sake and is always log here."""
        super().__init__(output_dim, init_std, std_range, "log", learn_std)
        table = torch.full((num_agents, output_dim), math.log(init_std))
        self.log_std_param = nn.Parameter(table, requires_grad=learn_std)
        self.agent_ids: torch.Tensor | None = None
        """Agent of every row of the next update; None means the master. Set by the model just before."""

    def update(self, mlp_output: torch.Tensor) -> None:
        """Set the distribution of every row from its mean and its agent's standard deviation."""
        table = torch.exp(self.log_std_param.clamp(self.log_std_range[0], self.log_std_range[1]))
        std = table[0] if self.agent_ids is None else functional.embedding(self.agent_ids, table)
        # expanded, because rollouts store one row of parameters for every environment
        self._distribution = Normal(mlp_output, std.expand_as(mlp_output))
