"""What a runner, evaluation and report may ask of an algorithm. Nobody outside asks for anything else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from tensordict import TensorDict

from epo_lab.base.clock import Clock

MOST_RECORDS = 256
"""Records that wait for somebody to take them; rsl_rl's own runner never does, so the oldest are dropped."""


class Stateful(Protocol):
    """Something that a checkpoint keeps."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Restore it."""


class Held:
    """What an algorithm holds itself, as a part of a checkpoint."""

    def __init__(self, read: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        """Take how its state is read, and how it is restored."""
        self.state_dict, self.load_state_dict = read, restore


class Part(NamedTuple):
    """A part of an algorithm's state."""

    owner: Stateful
    learned: bool = False
    """Whether it belongs to the models: a new run that begins with trained models takes it over."""
    per_env: bool = False
    """Whether it belongs to single environments: a run that goes on with another number of them begins it anew."""
    heavy: bool = False
    """Whether it goes into a file of its own, because it is large."""


class Algorithm(ABC):
    """A learning algorithm for one policy or a population of them; member 0 is the master.

    The first six methods are rsl_rl's. ``update`` is for rsl_rl's own runner; ours calls ``learn`` and ``evolve``.
    """

    clock: Clock
    num_members: int = 1
    """Number of policies."""
    learning_rate: float
    rnd: Any = None
    """rsl_rl's random network distillation, if it is used."""
    scalars_in_extras: bool = True
    """Whether the last step of a roll-out carries the scalars in its extras, for a runner that does not ask."""

    @abstractmethod
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Return an action for every environment."""

    @abstractmethod
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Take in one step."""

    @abstractmethod
    def compute_returns(self, obs: TensorDict) -> None:
        """Prepare what is learned from; ``obs`` came after the last step."""

    @abstractmethod
    def train_mode(self) -> None:
        """Prepare for training."""

    @abstractmethod
    def eval_mode(self) -> None:
        """Prepare for playing."""

    @abstractmethod
    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's parameters."""

    @abstractmethod
    def learn(self) -> dict[str, float]:
        """Learn from what was collected, and return the losses."""

    def evolve(self) -> None:
        """Look at the population and change it if it is time. Default: nothing evolves."""
        return

    def update(self) -> dict[str, float]:
        """Learn, then evolve."""
        losses = self.learn()
        self.evolve()
        return losses

    @abstractmethod
    def policy(self, member: int = 0) -> Any:
        """Return the model that acts for a member."""

    def env_members(self) -> list[int]:
        """Return the member that acts in each environment; nothing if there is only one."""
        return []

    def get_policy(self) -> Any:
        """Return the master, as rsl_rl calls it."""
        return self.policy()

    def memory(self) -> dict[str, list[Any]]:
        """Return who holds the memory: ``networks``, ``optimizer``, ``storage``, ``replay``. Default: nobody says."""
        return {}

    @abstractmethod
    def parts(self) -> dict[str, Part]:
        """Return everything beside the models that a resumed run needs, by name."""

    def before_save(self) -> None:
        """Prepare for :meth:`save`, which the first process calls alone: all processes call this. Default: nothing."""
        return

    @abstractmethod
    def save(self) -> dict[str, Any]:
        """Return the models, in rsl_rl's layout, and under ``parts`` the states of the parts."""

    @abstractmethod
    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load what :meth:`save` returned."""

    def scalars(self) -> dict[str, float]:
        """Return what is logged of the last iteration, by tag."""
        return {}

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Return the records since the last call, by kind; a kind is a file of the run folder."""
        return {}

    def score(self) -> float | None:
        """Return how good the master is; None if the algorithm does not know better than the mean reward."""
        return None

    def interrupt(self, *, forget: bool) -> None:
        """Forget what belongs to running episodes, because these were cut off.

        Args:
            forget: Whether to forget finished episodes too, because they are another process's.
        """
        return


class Log:
    """Records that wait to be written."""

    def __init__(self, *kinds: str) -> None:
        """Create the log.

        Args:
            kinds: Names of the kinds of records.
        """
        self._waiting: dict[str, deque] = {kind: deque(maxlen=MOST_RECORDS) for kind in kinds}

    def add(self, kind: str, record: dict[str, Any]) -> None:
        """Add a record."""
        self._waiting[kind].append(record)

    def take(self) -> dict[str, list[dict[str, Any]]]:
        """Return all that wait, and forget them."""
        taken = {kind: list(records) for kind, records in self._waiting.items()}
        for records in self._waiting.values():
            records.clear()
        return taken


def part_states(parts: dict[str, Part]) -> dict[str, Any]:
    """Return the states of all parts that are not heavy."""
    return {name: part.owner.state_dict() for name, part in parts.items() if not part.heavy}


def load_parts(parts: dict[str, Part], states: dict[str, Any], *, same_envs: bool = True) -> None:
    """Restore parts from their states; a state that is not there leaves its part as it is.

    Args:
        parts: The parts.
        states: Their states.
        same_envs: Whether there are as many environments as there were.
    """
    for name, part in parts.items():
        if name in states and (same_envs or not part.per_env):
            part.owner.load_state_dict(states[name])
