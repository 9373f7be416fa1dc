"""Packages that others import at once and few runs need."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """Stands for a package until something of it is used; then the package is loaded and answers.

    The standard library's lazy loader would load it as soon as somebody looks through all modules for their files, as
    ``inspect`` does whenever torch registers an operator.
    """

    def __getattr__(self, name: str) -> Any:
        """Load the package and return what it has; marks of the import system that this has not are not its own."""
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        return getattr(self._package(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Load the package and change it."""
        setattr(self._package(), name, value)

    def _package(self) -> ModuleType:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return import_module(self.__name__)


def postpone(*names: str) -> None:
    """Let packages load when they are used; what is loaded or not installed stays as it is."""
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            package = StandIn(name)
            vars(package).update(__spec__=spec, __file__=spec.origin, __loader__=spec.loader)
            sys.modules[name] = package


def is_loaded(name: str) -> bool:
    """Return whether a package has really been loaded."""
    return name in sys.modules and not isinstance(sys.modules[name], StandIn)


@contextmanager
def uncollected(*, freeze: bool = False) -> Iterator[None]:
    """Load without looking for garbage: loading leaves none, and the looking would take a fifth of the time.

    Args:
        freeze: Whether nobody looks at what was loaded later on either, nor when the process ends.
    """
    gc.disable()
    try:
        yield
    finally:
        if freeze:
            gc.freeze()
        gc.enable()
