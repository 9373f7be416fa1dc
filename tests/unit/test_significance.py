"""Tests of a comparison's claims."""

import sys
from math import comb

import pytest

from epo_lab.base.errors import UserError
from epo_lab.report.comparison import Score
from support.command import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from significance import compare, holm

pytestmark = pytest.mark.unit


def runs(agent, wins, count):
    return [Score("task", agent, seed, "final", 1, 0.9 if seed < wins else 0.1) for seed in range(count)]


def test_holm_corrects_step_by_step_and_never_turns_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []


def test_counts_and_fishers_test_are_those_of_the_definition():
    table = compare(runs("epo", 7, 8) + runs("sapg", 1, 8), "epo", ["sapg"], None, 0.8)
    # two-sided: all tables with these margins that are at most as likely
    weights = [comb(8, wins) * comb(8, 8 - wins) for wins in range(9)]
    expected = sum(weight for weight in weights if weight <= weights[7]) / sum(weights)
    assert f"| task | sapg | 7 of 8 | 1 of 8 | {expected:.3g} | {expected:.3g} |" in table


def test_an_agent_without_runs_is_named():
    with pytest.raises(UserError, match="no run of ppo on task"):
        compare(runs("epo", 1, 2), "epo", ["ppo"], None, 0.8)
