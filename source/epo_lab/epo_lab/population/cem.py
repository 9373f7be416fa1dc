"""The cross-entropy method with a diagonal covariance, as CEM-RL uses it on the weights of actors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import torch

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT, Weight, Whole, between

from .evolution import Child, Evolution, Generation, Genome
from .fitness import Fitness
from .genetics import _mix


@dataclass
class CemCfg:
    """Settings of the cross-entropy method."""

    parents: Whole | None = None
    """Best members from which mean and variance are estimated. Default None: half of them."""
    variance: Weight = 1e-3
    """First variance of every parameter. Default 1e-3."""
    damping: Weight = 1e-3
    """First noise that is added to the variance. Default 1e-3."""
    damping_limit: Weight = 1e-5
    """Noise that is added in the end. Default 1e-5."""
    damping_decay: Annotated[float, between(0, 1)] = 0.95
    """How much of its distance to the limit the noise keeps in a generation. Default 0.95."""

    def count_parents(self, num_members: int) -> int:
        """Return how many members are parents; raise a :class:`UserError` if there are not as many."""
        number = num_members // 2 if self.parents is None else self.parents
        if not 1 <= number <= num_members:
            raise UserError(f"{ROOT}.cem.parents must be between 1 and the {num_members} members, not {number}")
        return number


class CrossEntropy(Evolution):
    """Keeps mean and variance of all parameters; generations are drawn from (seed, number of the generation)."""

    def __init__(self, cfg: CemCfg, mean: torch.Tensor, num_members: int, seed: int = 0) -> None:
        """Begin around given parameters.

        Args:
            cfg: Settings.
            mean: First mean, on the CPU. Shape is (D,).
            num_members: Number of members n.
            seed: Seed of everything that is drawn.
        """
        self.cfg, self.num_members, self.seed = cfg, num_members, seed
        self.mean = mean.clone()
        self.variance = torch.full_like(mean, cfg.variance)
        self.damping = cfg.damping
        self.number = 0
        """Generations that were told."""
        self.weights = parent_weights(cfg.count_parents(num_members), mean.dtype)

    def ask(self) -> torch.Tensor:
        """Return the members of the current generation; every call draws the same. Shape is (n, D)."""
        generator = torch.Generator().manual_seed(_mix(self.seed, self.number))
        noise = torch.randn(self.num_members, len(self.mean), generator=generator, dtype=self.mean.dtype)
        return torch.addcmul(self.mean, self.variance.sqrt(), noise)

    def tell(self, rows: torch.Tensor, fitness: torch.Tensor) -> None:
        """Move mean and variance to the best members.

        Args:
            rows: Members as they were when they were evaluated, with what gradients did to them. Shape is (n, D).
            fitness: Their fitness. Shape is (n,).
        """
        best = torch.sort(fitness, descending=True, stable=True).indices[: len(self.weights)]
        parents = rows[best]

        # Damping: the noise that keeps the variance up decays to its limit
        decay = self.cfg.damping_decay
        self.damping = decay * self.damping + (1.0 - decay) * self.cfg.damping_limit

        # Variance: weighted mean of the parents' squared deviations from the old mean
        self.variance = self.weights @ (parents - self.mean).square() + self.damping

        # Mean: weighted mean of the parents
        self.mean = self.weights @ parents
        self.number += 1

    def propose(self, fitness: Fitness, genome: Genome, clock: Clock) -> Generation | None:
        """Move mean and variance and replace all members, if all are evaluated."""
        if not bool(fitness.evaluated.all()):
            return None
        record = {
            "iteration": clock.iterations,
            "steps": clock.steps,
            "generation": self.number,
            "seed": self.seed,
            "cfg": asdict(self.cfg),
            "fitness": fitness.values.tolist(),
        }
        self.tell(genome.read().to(self.mean.dtype), fitness.values)
        record["spread"] = self.spread()
        return Generation([Child(slot, (), row) for slot, row in enumerate(self.ask())], record)

    def spread(self) -> float:
        """Return the mean standard deviation of a parameter."""
        return float(self.variance.sqrt().mean())

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {
            "mean": self.mean,
            "variance": self.variance,
            "damping": self.damping,
            "number": self.number,
            "seed": self.seed,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.mean, self.variance = state["mean"].cpu(), state["variance"].cpu()
        self.damping, self.number, self.seed = state["damping"], state["number"], state["seed"]


def parent_weights(number: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return lambda_i ~ log((1 + number) / i), which sum to 1: the better the parent, the more it counts."""
    ranks = torch.arange(1, number + 1, dtype=torch.float64)
    weights = torch.log((1.0 + number) / ranks)
    return (weights / weights.sum()).to(dtype)
