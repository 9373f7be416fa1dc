"""Bounded policies, stacked networks, and what is exported of them."""

import pytest
import torch
from tensordict import TensorDict
from torch import nn

from epo_lab.base.errors import UserError
from epo_lab.models.q_functions import QFunctions
from epo_lab.models.squashed import BoundedActor, BoundedOutput, SquashedGaussian, action_range
from epo_lab.models.stacked import StackedMLP

pytestmark = pytest.mark.unit

BOUNDS = [[-1.0, 3.0], [-0.5, 0.5], [2.0, 4.0]]
GROUPS = {"actor": ["policy", "more"]}


def observations(rows=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    obs = {"policy": torch.randn(rows, 5, generator=generator), "more": torch.randn(rows, 2, generator=generator)}
    return TensorDict(obs, [rows])


def make_actor(output=SquashedGaussian, **more):
    torch.manual_seed(0)
    settings = {"hidden_dims": [16, 16], "activation": "swish", "obs_normalization": True, **more}
    actor = BoundedActor(
        observations(), GROUPS, "actor", 3, output=output, output_settings={"bounds": BOUNDS}, **settings
    )
    actor.train()
    actor.update_normalization(TensorDict({n: 4 * v + 1 for n, v in observations(100, 1).items()}, [100]))
    return actor


@pytest.mark.parametrize("output", [SquashedGaussian, BoundedOutput])
@pytest.mark.parametrize("clip", [None, 2.0])
def test_an_exported_policy_is_the_policy(tmp_path, output, clip):
    from onnx.reference import ReferenceEvaluator

    actor = make_actor(output, obs_clip=clip)
    obs = observations(50, 2)
    expected = actor(obs).detach()
    rows = torch.cat([obs["policy"], obs["more"]], -1)
    torch.jit.script(actor.as_jit()).save(str(tmp_path / "policy.pt"))
    torch.testing.assert_close(torch.jit.load(str(tmp_path / "policy.pt"))(rows), expected, atol=1e-6, rtol=0)
    exported = actor.as_onnx(verbose=False).eval()
    torch.onnx.export(
        exported,
        exported.get_dummy_inputs(),
        str(tmp_path / "policy.onnx"),
        opset_version=18,
        dynamo=False,
        input_names=exported.input_names,
        output_names=exported.output_names,
    )
    session = ReferenceEvaluator(str(tmp_path / "policy.onnx"))
    for row, wanted in zip(rows[:10].split(1), expected[:10].split(1), strict=True):
        found = torch.from_numpy(session.run(None, {"obs": row.numpy()})[0])
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


def test_actions_stay_inside_their_bounds_and_reach_them():
    actor = make_actor()
    obs = TensorDict({n: 1000 * v for n, v in observations(2000, 3).items()}, [2000])
    noise = 100 * torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
    unit, _ = actor.distribution.draw(actor.output(obs), noise)
    actions = actor.distribution.to_env(unit)
    low, high = torch.tensor(BOUNDS).unbind(1)
    assert (actions >= low).all() and (actions <= high).all()
    torch.testing.assert_close(actions.amin(0), low, atol=1e-3, rtol=0)
    torch.testing.assert_close(actions.amax(0), high, atol=1e-3, rtol=0)


def test_the_first_standard_deviation_is_the_same_in_every_state():
    actor = make_actor()
    _, log_std = actor.distribution.mean_and_log_std(actor.output(observations(30, 5)))
    torch.testing.assert_close(log_std.exp(), torch.ones(30, 3))


@pytest.mark.parametrize("bounds", [[1.0, 2.0], [[0.0, 1.0]], "wide", [[1.0, 0.0]] * 3, float("inf"), 0.0])
def test_bounds_that_do_not_fit_are_refused(bounds):
    with pytest.raises(UserError, match="action_bounds"):
        action_range(bounds, 3)


def test_bounds_can_be_one_number_or_one_for_each_action():
    assert [bound.tolist() for bound in action_range(2.0, 3)] == [[-2.0] * 3, [2.0] * 3]
    assert [bound.tolist() for bound in action_range([1.0, 2.0, 3.0], 3)] == [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]


def alone(stack, member, layer_norm):
    """Return one network of a stack as plain torch layers."""
    layers = []
    for layer, (weight, bias) in enumerate(zip(stack.weights, stack.biases, strict=True)):
        linear = nn.Linear(weight.shape[1], weight.shape[2])
        linear.weight.data, linear.bias.data = weight[member].T.clone(), bias[member, 0].clone()
        layers.append(linear)
        if layer < len(stack.weights) - 1:
            if layer_norm:
                norm = nn.LayerNorm(weight.shape[2])
                norm.weight.data, norm.bias.data = stack.gains[layer][member, 0], stack.shifts[layer][member, 0]
                layers.append(norm)
            layers.append(nn.SiLU())
    return nn.Sequential(*layers)


@pytest.mark.parametrize("layer_norm", [False, True])
def test_a_stack_is_each_network_alone(layer_norm):
    torch.manual_seed(1)
    stack = StackedMLP(4, 6, 3, [16, 8], "swish", layer_norm)
    for value in stack.parameters():
        value.data += 0.1 * torch.randn_like(value)
    shared, own = torch.randn(10, 6), torch.randn(4, 10, 6)
    for member in range(4):
        network = alone(stack, member, layer_norm)
        torch.testing.assert_close(stack(shared)[member], network(shared), atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(stack(own)[member], network(own[member]), atol=1e-6, rtol=1e-6)


def test_a_target_normalises_as_its_original_and_has_weights_of_its_own():
    obs = observations(100)
    critic = QFunctions(obs, ["policy"], 3, hidden_dims=[8], obs_normalization=True, num_atoms=11, layer_norm=True)
    target = critic.make_target()
    critic.update_normalization(TensorDict({"policy": 3 * obs["policy"] + 2}, [100]))
    torch.testing.assert_close(target.latent(obs), critic.latent(obs))
    critic.net.weights[0].data += 1.0
    actions = torch.zeros(100, 3)
    assert not torch.allclose(target(target.latent(obs), actions), critic(critic.latent(obs), actions))
    assert not any(value.requires_grad for value in target.net.parameters())
