"""OpenAI's evolution strategy: noise on the parameters of one policy, and a step along the noise that paid.

The noise of a generation is drawn from (seed, number of the generation), so that a lineage of seeds and returns is
enough to repeat a run; nobody has to keep weights.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import prod, sqrt
from typing import Annotated, Any

import torch

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT, Count, Positive, Weight, one_of

from .amt import FITNESS, AmtCfg, MutationRate
from .evolution import Child, Evolution, Generation, Genome
from .fitness import Fitness
from .genetics import _mix

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@dataclass
class EsCfg:
    """Settings of an evolution strategy."""

    sigma: Positive = 0.02
    """Standard deviation of the noise on the parameters. Default 0.02."""
    learning_rate: Positive = 0.01
    """Step size alpha_es. Default 0.01."""
    optimizer: Annotated[str, one_of(OPTIMIZERS)] = "sgd"
    """``sgd`` (default): theta += alpha / (n sigma) sum F eps; ``adam``: Adam on that direction."""
    mirrored: bool = True
    """Whether members come in pairs with opposite noise. Default True."""
    noise_rank: Count = 0
    """Rank r of the noise on weight matrices, A B^T / sqrt(r), which needs fewer draws for large networks.
    Default 0: every weight has noise of its own."""
    zeta: Weight = 0.0
    """Largest step of the mutation rate sigma (ESAC's automatic mutation tuning). Default 0: sigma stays."""
    amt_fitness: Annotated[str, one_of(FITNESS)] = "normalised"
    """Fitness that tunes the mutation rate: ``normalised`` (default, divided by its running scale) or ``raw``."""

    def check(self, num_members: int) -> None:
        """Raise a :class:`UserError` if the noise does not fit a population of this size."""
        if num_members < 2 or (self.mirrored and num_members % 2):
            raise UserError(
                f"mirrored noise needs an even number of members, not {num_members}: set {ROOT}.es.mirrored=false"
            )

    def amt(self) -> AmtCfg:
        """Return the settings of the mutation rate."""
        return AmtCfg(self.sigma, self.learning_rate, self.zeta, self.amt_fitness)


class EvolutionStrategy(Evolution):
    """Keeps theta, the mean of the population: :meth:`ask` gives members around it, :meth:`tell` moves it."""

    def __init__(
        self, cfg: EsCfg, theta: torch.Tensor, shapes: Sequence[torch.Size], num_members: int, seed: int = 0
    ) -> None:
        """Begin with given parameters.

        Args:
            cfg: Settings.
            theta: First parameters, on the CPU. Shape is (D,).
            shapes: Shapes of the parameters that theta is made of, for noise of low rank.
            num_members: Number of members n.
            seed: Seed of all noise.
        """
        cfg.check(num_members)
        self.cfg, self.num_members, self.seed = cfg, num_members, seed
        self.theta = theta.clone()
        """Parameters that everything moves around. Shape is (D,)."""
        self.number = 0
        """Generations that were told."""
        self.mutation = MutationRate(cfg.amt(), num_members)
        self._shapes = list(shapes)
        # Note: a parameter shares its memory, so that the optimizer moves theta itself
        self._parameter = torch.nn.Parameter(self.theta)
        self._optimizer = OPTIMIZERS[cfg.optimizer]([self._parameter], lr=cfg.learning_rate, maximize=True)

    @property
    def sigma(self) -> float:
        """Mutation rate: the standard deviation of the noise on the parameters."""
        return self.mutation.sigma

    def noise(self) -> torch.Tensor:
        """Return the noise of the current generation; every call draws the same. Shape is (n, D)."""
        generator = torch.Generator().manual_seed(_mix(self.seed, self.number))
        return draw_noise(
            self.num_members, self._shapes, self.cfg.noise_rank, self.cfg.mirrored, generator, self.theta.dtype
        )

    def ask(self) -> torch.Tensor:
        """Return the members of the current generation, theta + sigma eps. Shape is (n, D)."""
        return torch.add(self.theta, self.noise(), alpha=self.sigma)

    def tell(self, fitness: torch.Tensor) -> torch.Tensor:
        """Move theta by what the members reached, begin the next generation and return the direction.

        Args:
            fitness: Fitness of all members. Shape is (n,).
        """
        direction = es_direction(centred_ranks(fitness), self.noise(), self.sigma)
        self._ascend(direction)
        self.mutation.tell(fitness)
        self.number += 1
        return direction

    def _ascend(self, direction: torch.Tensor) -> None:
        """Move theta by alpha_es along the direction, or as Adam does."""
        self._parameter.grad = direction
        self._optimizer.step()

    def propose(self, fitness: Fitness, genome: Genome, clock: Clock) -> Generation | None:
        """Move theta and replace all members, if all are evaluated."""
        if not bool(fitness.evaluated.all()):
            return None
        record = self.record(fitness.values, clock)
        direction = self.tell(fitness.values)
        record["direction"] = float(direction.norm())
        return Generation([Child(slot, (), row) for slot, row in enumerate(self.ask())], record)

    def record(self, fitness: torch.Tensor, clock: Clock) -> dict[str, Any]:
        """Return the line of the lineage with which :func:`replay` repeats the current generation."""
        return {
            "iteration": clock.iterations,
            "steps": clock.steps,
            "generation": self.number,
            "seed": self.seed,
            "cfg": asdict(self.cfg),
            "sigma": self.sigma,
            "fitness": fitness.tolist(),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        return {
            "theta": self.theta.clone(),
            "number": self.number,
            "seed": self.seed,
            "mutation": self.mutation.state_dict(),
            "optimizer": copy.deepcopy(self._optimizer.state_dict()["state"]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.theta.copy_(state["theta"])
        self.number, self.seed = state["number"], state["seed"]
        self.mutation.load_state_dict(state["mutation"])
        moments = state["optimizer"].get("state", state["optimizer"])  # early checkpoints of 0.2 hold more
        self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": moments})


def draw_noise(
    num_members: int,
    shapes: Sequence[torch.Size],
    rank: int,
    mirrored: bool,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Return noise with mean 0 and variance 1 for all members. Shape is (n, D).

    Args:
        num_members: Number of members n.
        shapes: Shapes of the parameters that a row is made of.
        rank: Rank of the noise on matrices; 0 for noise of full rank.
        mirrored: Whether the second half of the members has the opposite noise of the first.
        generator: Where it is drawn from.
        dtype: Type of the numbers.
    """
    rows = num_members // 2 if mirrored else num_members
    blocks = [_block(rows, shape, rank, generator, dtype) for shape in shapes]
    noise = torch.cat(blocks, dim=1)
    return torch.cat([noise, -noise]) if mirrored else noise


def _block(rows: int, shape: torch.Size, rank: int, generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    if rank == 0 or len(shape) < 2 or rank >= min(shape):
        return torch.randn(rows, prod(shape), generator=generator, dtype=dtype)
    # Noise of low rank, A B^T / sqrt(r): elements have variance 1, but are not independent
    left = torch.randn(rows, shape[0], rank, generator=generator, dtype=dtype)
    right = torch.randn(rows, rank, shape[1], generator=generator, dtype=dtype)
    return torch.bmm(left, right).div_(sqrt(rank)).flatten(1)


def centred_ranks(fitness: torch.Tensor) -> torch.Tensor:
    """Return ranks from -0.5 (worst) to 0.5 (best); equals share the mean of their ranks. Shape is (n,)."""
    below = (fitness.unsqueeze(1) > fitness).sum(dim=1)
    equal = (fitness.unsqueeze(1) == fitness).sum(dim=1)
    return (below + 0.5 * (equal - 1).to(fitness.dtype)) / (len(fitness) - 1) - 0.5


def es_direction(ranks: torch.Tensor, noise: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return the ascent direction 1 / (n sigma) sum_i F_i eps_i. Shape is (D,)."""
    return (ranks.to(noise.dtype) @ noise) / (len(ranks) * sigma)


def replay(theta: torch.Tensor, shapes: Sequence[torch.Size], records: Iterable[dict[str, Any]]) -> torch.Tensor:
    """Return theta after the generations of a lineage, from seeds and returns alone.

    Args:
        theta: Parameters before the first record. Shape is (D,).
        shapes: Shapes of the parameters that theta is made of.
        records: Lines of the lineage, from the first generation on.
    """
    strategy: EvolutionStrategy | None = None
    for record in records:
        if strategy is None:
            strategy = EvolutionStrategy(EsCfg(**record["cfg"]), theta, shapes, len(record["fitness"]), record["seed"])
        strategy.tell(torch.tensor(record["fitness"], dtype=torch.float64))
    return theta if strategy is None else strategy.theta
