"""What evolves and what decides about it: the two protocols that genetics, PBT and others fill in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from epo_lab.base.clock import Clock

from .fitness import Fitness


class Genome(Protocol):
    """A table with a row for each member of a population, and what belongs to a member besides its row."""

    def read(self, slots: Sequence[int] | None = None) -> torch.Tensor:
        """Return the rows of some members, or of all. Shape is (n, D), on the CPU."""
        ...

    def write(self, slots: Sequence[int], rows: torch.Tensor) -> None:
        """Replace the rows of some members."""

    def inherit(self, slot: int, parents: Sequence[int]) -> None:
        """Let a member take over from its parents what is not in the row; without parents it begins anew."""

    def swap(self, first: int, second: int) -> None:
        """Let two members change places, with everything that is theirs."""


@dataclass(frozen=True)
class Child:
    """A row that takes the place of another."""

    slot: int
    parents: tuple[int, ...]
    gene: torch.Tensor


@dataclass(frozen=True)
class Generation:
    """What one event decided.

    A parent is replaced in the same event only by its own mutant, and after its children: they can be written in turn.
    """

    children: list[Child]
    record: dict[str, Any] = field(repr=False)
    """The event's line in the lineage."""
    promoted: int | None = None
    """Member that changes places with the master, before children are written. Default None: nobody."""

    @property
    def slots(self) -> list[int]:
        """Members that are replaced."""
        return [child.slot for child in self.children]


class Evolution(ABC):
    """Decides when members of a population are replaced, and by what."""

    def due(self, clock: Clock) -> bool:
        """Return whether it is time to look; this costs nothing. Default: as soon as all members have a fitness."""
        return True

    @abstractmethod
    def propose(self, fitness: Fitness, genome: Genome, clock: Clock) -> Generation | None:
        """Look at the population and return what follows, if anything does."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""


def apply(generation: Generation, genome: Genome) -> None:
    """Write the children; every other row stays as it was."""
    if generation.promoted is not None:
        genome.swap(0, generation.promoted)
    for child in generation.children:
        genome.write([child.slot], child.gene.unsqueeze(0))
        genome.inherit(child.slot, child.parents)
