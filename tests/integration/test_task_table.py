"""The table of names that needs no Isaac Lab says what Isaac Lab says."""

import argparse
from importlib.metadata import version

import pytest
from isaaclab.app import add_launcher_args
from task_table import current_table

from epo_lab.cli.early import LAUNCHER_FLAGS, LAUNCHER_VALUES
from epo_lab.configs.names import ISAACLAB, TABLE

pytestmark = pytest.mark.integration


def test_table_holds_what_is_registered():
    assert version("isaaclab") == ISAACLAB
    assert TABLE.read_text() == current_table(), "write it anew with tools/task_table.py"


def test_launcher_options_are_isaac_labs():
    parser = argparse.ArgumentParser(add_help=False)
    add_launcher_args(parser)
    options = parser._option_string_actions
    assert set(LAUNCHER_FLAGS) == {name for name, action in options.items() if action.nargs == 0}
    assert set(LAUNCHER_VALUES) == {name for name, action in options.items() if action.nargs != 0}
