"""A stacked population acts as each of its members would alone."""

import copy

import pytest
import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict

from epo_lab.base.errors import UserError
from epo_lab.models.latent import LatentMLPModel, LatentRNNModel
from epo_lab.models.members import StackedGenome, StackedPolicies, flatten, network_parameters, write_row
from epo_lab.population.assignment import assign_agents
from epo_lab.population.evolution import Child, Generation, apply

pytestmark = pytest.mark.unit

MEMBERS, ENVS, OBS, ACTIONS = 5, 20, 7, 3
GROUPS = {"actor": ["policy"]}
NETS = {
    "mlp": (LatentMLPModel, {"hidden_dims": [16, 8], "activation": "elu"}),
    "lstm": (LatentRNNModel, {"hidden_dims": [8], "rnn_type": "lstm", "rnn_hidden_dim": 11, "rnn_num_layers": 2}),
    "gru": (LatentRNNModel, {"hidden_dims": [8], "rnn_type": "gru", "rnn_hidden_dim": 11, "rnn_num_layers": 2}),
    "lstm with layer norm": (
        LatentRNNModel,
        {"hidden_dims": [8, 8], "rnn_type": "lstm", "rnn_hidden_dim": 9, "rnn_layer_norm": True, "activation": "relu"},
    ),
}


def observations(seed: int) -> TensorDict:
    generator = torch.Generator().manual_seed(seed)
    return TensorDict({"policy": 2.0 + 3.0 * torch.randn(ENVS, OBS, generator=generator)}, batch_size=[ENVS])


def make(net: str):
    torch.manual_seed(3)
    kind, settings = NETS[net]
    template = kind(observations(0), GROUPS, "actor", ACTIONS, obs_normalization=True, **settings)
    for seed in range(4):
        template.update_normalization(observations(seed))
    ids = assign_agents(ENVS, MEMBERS, seed=8)
    stacked = StackedPolicies(template, MEMBERS, ids)
    stacked.rows += 0.3 * torch.randn(stacked.rows.shape)
    alone = []
    for row in stacked.rows:
        member = copy.deepcopy(template)
        write_row(row, list(network_parameters(member)))
        alone.append(member)
    return template, ids, stacked, alone


@pytest.mark.parametrize("net", NETS)
def test_members_act_as_each_alone(net):
    _, ids, stacked, alone = make(net)
    generator = torch.Generator().manual_seed(1)
    with torch.inference_mode():
        for step in range(12):
            obs = observations(10 + step)
            together = stacked(obs)
            own = torch.stack([member(obs) for member in alone])
            torch.testing.assert_close(together, own[ids, torch.arange(ENVS)], atol=1e-5, rtol=1e-5)
            assert (own[0] - own[1]).abs().max() > 1e-2, "members differ"
            # episodes end here and there
            dones = (torch.rand(ENVS, generator=generator) < 0.3).long()
            stacked.reset(dones)
            for member in alone:
                member.reset(dones)


@pytest.mark.parametrize("net", ["lstm", "gru"])
def test_a_state_goes_on_from_a_checkpoint(net):
    _, _, stacked, _ = make(net)
    with torch.inference_mode():
        stacked(observations(1))
        saved, rows = stacked.state_dict(), StackedGenome(stacked).state_dict()
        after = stacked(observations(2))
        other = make(net)[2]
        other.rows.zero_()
        assert not torch.equal(other(observations(2)), after)
        StackedGenome(other).load_state_dict(rows)
        other.load_state_dict(saved)
        assert torch.equal(other(observations(2)), after)
        other.reset()
        fresh = make(net)[2]
        assert torch.equal(other(observations(3)), fresh(observations(3)))


@pytest.mark.parametrize("net", NETS)
def test_a_row_holds_a_whole_policy(net):
    template, _, stacked, alone = make(net)
    size = sum(parameter.numel() for parameter in template.parameters())
    assert stacked.rows.shape == (MEMBERS, size), "a model without a distribution has no other parameters"
    for row, member in zip(stacked.rows, alone, strict=True):
        assert torch.equal(flatten(list(network_parameters(member))), row)


def test_rows_are_a_genome():
    _, _, stacked, _ = make("mlp")
    genome = StackedGenome(stacked)
    before = genome.read()
    child = torch.randn(stacked.num_parameters)
    apply(Generation([Child(3, (0, 1), child)], {}), genome)
    after = genome.read()
    assert torch.equal(after[3], child) and torch.equal(genome.read([3])[0], child)
    others = [0, 1, 2, 4]
    assert torch.equal(after[others], before[others])


def test_gradients_reach_the_rows():
    _, _, stacked, alone = make("mlp")
    inputs = torch.randn(MEMBERS, 6, OBS)
    rows = stacked.rows.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(stacked.network(rows, inputs).square().sum(), rows)
    for number, member in enumerate(alone):
        parameters = list(network_parameters(member))
        own = torch.autograd.grad(member.mlp(inputs[number]).square().sum(), parameters)
        assert torch.allclose(gradient[number], torch.cat([g.flatten() for g in own]), atol=1e-4)


def test_a_layer_that_cannot_be_stacked_is_refused():
    model = MLPModel(observations(0), GROUPS, "actor", ACTIONS, [4], "elu")
    model.mlp = torch.nn.Sequential(torch.nn.Conv1d(1, 2, 3))
    with pytest.raises(UserError, match="Conv1d"):
        StackedPolicies(model, 2, assign_agents(ENVS, 2))
