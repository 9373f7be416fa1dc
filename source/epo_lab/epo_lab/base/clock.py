"""How far a run is."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Clock:
    """How far a run is. One object serves checkpoint, log and evolution."""

    iterations: int = 0
    """Finished iterations."""
    steps: int = 0
    """Control steps of each environment."""
    gradient_steps: int = 0
    """Steps of the optimizer, the skipped ones included."""

    def state_dict(self) -> dict[str, int]:
        """Return the counters."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the counters."""
        for name, value in state.items():
            setattr(self, name, value)
