"""Running episodes of simulated tasks, in a file of their own a process beside the checkpoint: ``physics.pt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epo_lab.algorithms.base import Algorithm

    from .guard import GuardedEnv
    from .logger import EpoLogger

SAVES = "agent.save_physics=true keeps it in later ones"


def episodes_name(number: int) -> str:
    """Return the name of the file of a process, without its ending."""
    return f"physics_{number}" if number else "physics"


class Episodes:
    """Everything of this process that belongs to running episodes: simulation, random numbers, running sums."""

    def __init__(self, algorithm: Algorithm, env: GuardedEnv, logger: EpoLogger) -> None:
        """Take everything that has such a state."""
        self._algorithm, self._env, self._logger = algorithm, env, logger

    def save(self) -> dict[str, Any]:
        """Return everything that a resumed process needs to go on in the middle of its episodes, as this one does."""
        from .physics import save_physics
        from .state import rng_state

        return {
            "physics": save_physics(self._env.unwrapped),
            "rng": rng_state(),
            "parts": {name: part.owner.state_dict() for name, part in self._per_env().items()},
            "running": self._logger.running(),
        }

    def misfit(self, content: dict[str, Any], processes: int) -> str:
        """Return why a state cannot be restored, as far as that can be told before; nothing if it can.

        Args:
            content: What the file holds; nothing if there is none.
            processes: Number of processes.
        """
        from .physics import is_simulated, misfit

        if not is_simulated(self._env.unwrapped):
            return "checkpoints do not hold the state of its simulation"
        if not content:
            return f"this checkpoint does not hold the state of its simulation ({SAVES})"
        if content["world_size"] != processes:
            return f"the simulation was saved by {content['world_size']} processes, and now there are {processes}"
        return misfit(self._env.unwrapped, content["physics"])

    def restore(self, content: dict[str, Any]) -> str:
        """Restore what :meth:`save` returned, and return why that was not possible; nothing if it was."""
        from epo_lab.algorithms.base import load_parts

        from .physics import set_physics_state
        from .state import set_rng_state

        because = set_physics_state(self._env.unwrapped, content["physics"])
        if not because:
            # a part may keep what it is given, so it is given on the device of the networks
            load_parts(self._per_env(), _moved(content["parts"], self._logger.device))
            self._logger.go_on(content["running"])
            set_rng_state(content["rng"])
        return because

    def _per_env(self) -> dict[str, Any]:
        return {n: part for n, part in self._algorithm.parts().items() if part.per_env and not part.heavy}


def _moved(values: Any, device: str) -> Any:
    """Return nested states on a device."""
    if isinstance(values, dict):
        return {name: _moved(value, device) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_moved(value, device) for value in values)
    return values.to(device) if hasattr(values, "to") else values
