"""Runs that are killed at any moment and resumed are the runs that were never killed, to the last file."""

import pytest
from faults.kill import check

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize(("agent", "kills"), [("epo", 12), ("sac", 8)])
def test_no_file_differs_after_kills(tmp_path, agent, kills):
    assert check(tmp_path, agent, kills) == []
