"""Set up what all tests share, before anything imports torch."""

import os
import runpy
import signal
import sys

import pytest

from support.command import ROOT

# Two workers and the commands they start share few cores: with a pool of torch threads each, they mostly wait for each
# other. Commands inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C; the commands that tests stop with it must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def refuse(tmp_path, monkeypatch, capfd):
    """Call a script in this process, in an empty folder, and check that it ends with one clear line and code 2."""
    monkeypatch.chdir(tmp_path)

    def call(name: str, *args: str, says: str) -> None:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *args])
        with pytest.raises(SystemExit) as ending:
            runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
        error = capfd.readouterr().err
        assert ending.value.code == 2
        assert error.startswith(f"{name}: ") and error.count("\n") == 1, error
        assert says in error

    return call
