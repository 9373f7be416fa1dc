"""Recurrent states of models: copies, and all of them as a part of a checkpoint."""

from __future__ import annotations

from typing import Any

import torch


def copy_state(state: Any, columns: torch.Tensor | slice = slice(None)) -> Any:
    """Return a copy of a recurrent state, or of some columns of it; a pair stays a pair (LSTM)."""
    if state is None:
        return None
    if not isinstance(state, tuple):
        return state[:, columns].clone()
    parts = tuple(part[:, columns].clone() for part in state)
    return parts if len(parts) > 1 else parts[0]


class HiddenStates:
    """The live recurrent states of some models."""

    def __init__(self, models: list[Any]) -> None:
        """Take the models; those that are not recurrent have no state."""
        self._models = models

    def state_dict(self) -> list[Any]:
        """Return copies of all states."""
        return [_copy(model.get_hidden_state()) for model in self._models]

    def load_state_dict(self, states: list[Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        with torch.inference_mode():
            for model, state in zip(self._models, states, strict=True):
                if state is not None:
                    model.reset(hidden_state=_copy(state))

    def forget(self) -> None:
        """Begin all episodes anew."""
        for model in self._models:
            model.reset()


def _copy(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(part.detach().clone() for part in state)
    return None if state is None else state.detach().clone()
