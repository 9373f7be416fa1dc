"""Who acts where (invariant 2)."""

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.population.assignment import assign_agents

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("num_agents", [1, 4, 64, 1024])
def test_every_agent_has_the_same_number_of_environments(num_agents):
    agents = assign_agents(2048, num_agents, seed=3)
    assert torch.bincount(agents, minlength=num_agents).tolist() == [2048 // num_agents] * num_agents
    assert torch.equal(agents, assign_agents(2048, num_agents, seed=3))


def test_agents_are_shuffled_by_the_seed():
    assert not torch.equal(assign_agents(512, 8, seed=1), assign_agents(512, 8, seed=2))
    shares = torch.bincount(assign_agents(512, 8, seed=1)[:256], minlength=8)
    assert bool((shares > 16).all()), "a range of environments would give some agents all and others none"


def test_agents_that_do_not_divide_the_environments_are_refused_with_the_nearest_numbers():
    with pytest.raises(UserError, match=r"use 96 or 102 environments .* or 5 or 4 agents"):
        assign_agents(100, 6)
    with pytest.raises(UserError, match="8 agents cannot share 4 environments"):
        assign_agents(4, 8)


def test_the_master_takes_the_rest_if_that_is_allowed():
    agents = assign_agents(100, 6, allow_uneven=True)
    assert torch.bincount(agents).tolist() == [20, 16, 16, 16, 16, 16]
