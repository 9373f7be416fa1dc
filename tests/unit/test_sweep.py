"""Settings with several values."""

import pytest

from epo_lab.base.errors import UserError
from epo_lab.configs.sweep import expand

pytestmark = pytest.mark.unit


def test_without_a_sweep_there_is_one_nameless_point():
    arguments = ["agent.actor.hidden_dims=[64,64]", "presets=a,b", "--livestream", "1", "env.x=0.1"]
    assert expand(arguments) == [("", arguments)]


def test_all_combinations_keep_what_is_fixed():
    points = expand(["agent.a.x=1,2", "env.y=3", "agent.z=choice(a,b)"])
    assert points == [
        ("x=1,z=a", ["env.y=3", "agent.a.x=1", "agent.z=a"]),
        ("x=1,z=b", ["env.y=3", "agent.a.x=1", "agent.z=b"]),
        ("x=2,z=a", ["env.y=3", "agent.a.x=2", "agent.z=a"]),
        ("x=2,z=b", ["env.y=3", "agent.a.x=2", "agent.z=b"]),
    ]


def test_lists_and_ranges_are_values_too():
    assert [name for name, _ in expand(["agent.dims=[8,8],[16]"])] == ["dims=[8,8]", "dims=[16]"]
    assert [name for name, _ in expand(["env.n=range(2,8,3)"])] == ["n=2", "n=5"]


def test_settings_that_end_alike_keep_their_whole_names():
    assert expand(["env.a.x=1,2", "agent.a.x=3,4"])[0][0] == "env.a.x=1,agent.a.x=3"


@pytest.mark.parametrize("argument", ["agent.x=[1,2", "agent.x=interval(0,1)"])
def test_what_cannot_be_read_is_said(argument):
    with pytest.raises(UserError, match="cannot read"):
        expand([argument])
