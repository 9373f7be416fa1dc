"""Runs of the test process draw no ``curves.png``: it takes as long as ten of their iterations."""

import sys

import pytest

_draw = None


@pytest.fixture(autouse=True, scope="session")
def no_curves():
    """Leave the pictures out, except for tests that ask for ``curves``."""
    if "torch" not in sys.modules:
        yield
        return
    from epo_lab.runner.logger import EpoLogger

    global _draw
    # once: several folders of tests have this fixture
    _draw = _draw or EpoLogger.plot
    EpoLogger.plot = lambda logger: None
    yield
    EpoLogger.plot = _draw


@pytest.fixture
def curves(no_curves, monkeypatch):
    """Draw them in this test."""
    from epo_lab.runner.logger import EpoLogger

    monkeypatch.setattr(EpoLogger, "plot", _draw)
