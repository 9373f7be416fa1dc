"""ESAC's evolution: an evolution strategy whose winners breed, beside an actor that learns by gradients.

Slot 0 is the SAC actor as it is: it is judged and may win, but has no noise and no part in the step of theta. Slots 1
to w are children of the last winners, mutated like everybody else; the others are theta with noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch

from epo_lab.base.clock import Clock
from epo_lab.base.options import SHARE, Positive, Weight, Whole, between

from .amt import MutationRate
from .es import EsCfg, EvolutionStrategy, centred_ranks, es_direction
from .evolution import Child, Generation, Genome
from .fitness import Fitness
from .genetics import _mix
from .winners import mix, soft_winners

CROSSING, GATE = 0x5EED, 0x6A7E
"""Added to the seed, so that crossover and gate have draws of their own."""


@dataclass
class EsacEsCfg(EsCfg):
    """An evolution strategy with ESAC's constants."""

    sigma: Positive = 5e-3
    """First mutation rate. Default 5e-3."""
    learning_rate: Positive = 5e-3
    """Step size alpha_es. Default 5e-3."""
    mirrored: bool = False
    """Whether members come in pairs with opposite noise. Default False."""
    zeta: Weight = 1e-4
    """Largest step of the mutation rate. Default 1e-4."""


@dataclass
class EsacCfg:
    """What ESAC adds to an evolution strategy."""

    winners: Annotated[float, SHARE] = 0.4
    """Share e of the members that win. Default 0.4."""
    hindsight: bool = True
    """Whether winners are crossed with those of the generation before. Default True."""
    gradient_interval: Whole = 5
    """Generations g between two chances of the SAC actor to learn. Default 5."""
    sac_episodes: Whole = 10
    """Episodes that it plays before the population goes on, over all environments. Default 10."""
    probability: Annotated[float, between(0, 1)] = 1.0
    """First probability p_sac that it takes its chance. Default 1."""
    least_probability: Annotated[float, between(0, 1)] = 0.1
    """Probability in the end. Default 0.1."""
    probability_steps: Positive = 1.2e6
    """Environment steps in which the difference falls to 1/e. Default 1.2 million."""
    paper_gate: bool = False
    """Whether u of the test u < p_sac is standard normal, as the paper prints it, which moves the chance from 0.84 to
    0.54 only. Default False: uniform."""
    population_fills_replay: bool = False
    """Whether SAC also learns from what the members do. Default False (the paper)."""

    def probability_at(self, steps: int) -> float:
        """Return p_sac after a number of environment steps."""
        fall = math.exp(-steps / self.probability_steps)
        return self.least_probability + (self.probability - self.least_probability) * fall


class EsacEvolution(EvolutionStrategy):
    """Theta, the mutation rate, and the winners of the last two generations."""

    def __init__(
        self,
        cfg: EsCfg,
        esac: EsacCfg,
        theta: torch.Tensor,
        shapes: list[torch.Size],
        num_members: int,
        seed: int = 0,
    ) -> None:
        """Begin with given parameters, which are the SAC actor's too.

        Args:
            cfg: Settings of the evolution strategy.
            esac: What ESAC adds.
            theta: First parameters, on the CPU. Shape is (D,).
            shapes: Shapes of the parameters that theta is made of.
            num_members: Number of members n, the SAC actor included.
            seed: Seed of everything that is drawn.
        """
        super().__init__(cfg, theta, shapes, num_members - 1, seed)
        self.esac = esac
        self.mutation = MutationRate(cfg.amt(), num_members)
        self.actor = theta.clone()
        """Parameters of the SAC actor. Shape is (D,)."""
        self.children = theta.new_zeros(0, len(theta))
        """What the winners' children are before mutation. Shape is (w, D)."""
        self.winners = theta.new_zeros(0, len(theta))
        """Winners of the last generation, best first. Shape is (w, D)."""

    def ask(self) -> torch.Tensor:
        """Return the members of the current generation. Shape is (n, D)."""
        bases = self.theta.repeat(self.num_members, 1)
        bases[: len(self.children)] = self.children
        mutated = bases.add_(self.noise(), alpha=self.sigma)
        return torch.cat([self.actor.unsqueeze(0), mutated])

    def breed(self, rows: torch.Tensor, fitness: torch.Tensor) -> list[int]:
        """Move theta and the mutation rate, cross the winners, and return their slots.

        Args:
            rows: The members that were judged. Shape is (n, D).
            fitness: Their fitness. Shape is (n,).
        """
        # ES step on the members that had noise (eq. 7 as the appendix derives it)
        direction = es_direction(centred_ranks(fitness[1:]), self.noise(), self.sigma)
        self._ascend(direction)

        # Automatic mutation tuning (eq. 6)
        self.mutation.tell(fitness)

        # Crossover of winners: with those of the generation before (hindsight), then with theta
        generator = torch.Generator().manual_seed(_mix(self.seed + CROSSING, self.number))
        slots = soft_winners(fitness, self.esac.winners)[: self.num_members]
        winners = rows[slots]
        crossed = winners
        if self.esac.hindsight and len(self.winners) == len(winners):
            crossed = mix(winners, self.winners, generator)
        self.children = mix(crossed, self.theta.expand_as(crossed), generator)
        self.winners = winners
        self.number += 1
        return slots.tolist()

    def propose(self, fitness: Fitness, genome: Genome, clock: Clock) -> Generation | None:
        """Replace all members, if all are evaluated."""
        if not bool(fitness.evaluated.all()):
            return None
        record = self.record(fitness.values, clock)
        record["winners"] = self.breed(genome.read(), fitness.values)
        return Generation([Child(slot, (), row) for slot, row in enumerate(self.ask())], record)

    def learns(self, steps: int) -> bool:
        """Return whether the SAC actor takes its chance after this generation.

        Args:
            steps: Environment steps so far.
        """
        if self.number % self.esac.gradient_interval:
            return False
        generator = torch.Generator().manual_seed(_mix(self.seed + GATE, self.number))
        draw = torch.randn if self.esac.paper_gate else torch.rand
        return float(draw((), generator=generator)) < self.esac.probability_at(steps)

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        own = {"actor": self.actor.clone(), "children": self.children.clone(), "winners": self.winners.clone()}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        super().load_state_dict(state)
        self.actor, self.children, self.winners = (state[name].cpu() for name in ("actor", "children", "winners"))
