"""Who acts where (invariant 2)."""

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.population.assignment import assign_agents, follower_envs

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


@pytest.mark.parametrize(
    ("envs", "agents", "share"), [(480, 16, 0.5), (24_576, 64, 0.5), (100, 8, 0.25), (1024, 8, 0.8)]
)
def test_the_master_can_have_a_share_of_its_own(envs, agents, share):
    counts = torch.bincount(assign_agents(envs, agents, master_share=share), minlength=agents)
    followers = counts[1:]
    assert (followers == follower_envs(envs, agents, share)).all() and counts.sum() == envs
    # followers divide their part evenly; what is left over, less than one for each, is the master's
    assert share * envs <= counts[0] < share * envs + agents


def test_a_share_that_leaves_followers_nothing_is_refused():
    with pytest.raises(UserError, match=r"leaves 15 followers no environment each of 16"):
        assign_agents(16, 16, master_share=0.5)
