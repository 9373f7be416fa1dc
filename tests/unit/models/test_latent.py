"""Models that are conditioned on a gene (invariants 4, 5, 42)."""

import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from tensordict import TensorDict
from torch import nn

from epo_lab.evaluation.export import describe, export_policy
from epo_lab.models.latent import GeneLinear
from support.toy_env import ToyEnv, make, settings, train

pytestmark = pytest.mark.unit


def population(recurrent=None, **options):
    env = ToyEnv()
    cfg = settings(recurrent, num_agents=4, genes__dim=6, evolution__trigger="off")
    cfg["actor"] |= options
    algorithm = make(env, cfg)
    train(algorithm, env, 2)
    algorithm.eval_mode()
    return env, algorithm


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_an_observation_without_an_agent_is_the_masters(recurrent):
    env, algorithm = population(recurrent)
    actor = algorithm.actor
    plain = env.get_observations()
    labelled = plain.clone().set("agent_id", torch.zeros(16, 1, dtype=torch.long))
    outputs = []
    for obs in (plain, labelled):
        actor.reset()
        with torch.no_grad():
            outputs.append(actor(obs))
    assert torch.equal(*outputs)


def test_changing_a_gene_changes_its_agents_rows_only():
    env, algorithm = population()
    obs = env.get_observations().set("agent_id", (torch.arange(16) % 4).unsqueeze(-1))
    with torch.no_grad():
        before = [algorithm.actor(obs), algorithm.critic(obs)]
        algorithm.actor.genes[2] += 1.0
        after = [algorithm.actor(obs), algorithm.critic(obs)]
    for old, new in zip(before, after, strict=True):
        changed = (old != new).any(dim=1)
        assert torch.equal(changed, torch.arange(16) % 4 == 2)


def test_action_noise_belongs_to_the_agent():
    env, algorithm = population()
    with torch.no_grad():
        algorithm.actor.distribution.log_std_param[:] = torch.arange(4.0).unsqueeze(-1) - 2.0
    obs = env.get_observations().set("agent_id", (torch.arange(16) % 4).unsqueeze(-1))
    algorithm.actor(obs, stochastic_output=True)
    torch.testing.assert_close(algorithm.actor.output_std[:, 0].log(), (torch.arange(16) % 4) - 2.0)


def test_genes_are_stepped_once():
    _, algorithm = population()
    registered = [p for group in algorithm.optimizer.param_groups for p in group["params"]]
    assert sum(parameter is algorithm.actor.genes for parameter in registered) == 1
    assert algorithm.critic._gene_table[0] is algorithm.actor.genes


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
@pytest.mark.parametrize("kind", ["jit", "onnx"])
def test_exported_master_equals_the_policy_over_a_reset(recurrent, kind, layer_norm, tmp_path):
    if layer_norm and recurrent is None:
        pytest.skip("an MLP has no recurrent output to normalise")
    env, algorithm = population(recurrent, **({"rnn_layer_norm": True} if layer_norm else {}))
    actor = algorithm.get_policy()
    exported = load_jit(actor, tmp_path) if kind == "jit" else load_onnx(actor, tmp_path)
    actor.reset()
    generator = torch.Generator().manual_seed(0)
    for step in range(10):
        obs = torch.randn(1, 5, generator=generator)
        if step == 6:
            actor.reset(torch.ones(1))
            exported.reset()
        with torch.no_grad():
            expected = actor(env.get_observations()[:1].set("policy", obs))
        torch.testing.assert_close(exported(obs), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_a_follower_can_be_exported_too(recurrent, tmp_path):
    env, algorithm = population(recurrent)
    actor = algorithm.get_policy()
    actor.export_agent = 3
    exported = load_jit(actor, tmp_path)
    obs = env.get_observations()[:1].set("agent_id", torch.tensor([[3]]))
    actor.reset()
    with torch.no_grad():
        torch.testing.assert_close(exported(obs["policy"]), actor(obs), rtol=0, atol=1e-6)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
@pytest.mark.parametrize("kind", ["jit", "onnx"])
def test_what_is_rare_is_clipped_also_in_the_export(recurrent, kind, tmp_path):
    env, algorithm = population(recurrent, obs_normalization=True, obs_clip=5.0)
    actor = algorithm.get_policy()
    normalizer = actor.obs_normalizer
    mean, deviation = normalizer.mean, normalizer.std + 0.01
    assert deviation.min() > 0.1, "training has filled in the statistics"

    def act(policy, sigmas):
        obs = (mean + sigmas * deviation).unsqueeze(0)
        policy.reset()
        with torch.no_grad():
            return policy(env.get_observations()[:1].set("policy", obs) if policy is actor else obs)

    exported = load_jit(actor, tmp_path) if kind == "jit" else load_onnx(actor, tmp_path)
    for sigmas in (3.0, 5.0, 50.0):
        torch.testing.assert_close(act(exported, sigmas), act(actor, sigmas), rtol=0, atol=1e-6)
    torch.testing.assert_close(act(actor, 50.0), act(actor, 5.0), rtol=0, atol=1e-5)
    assert (act(actor, 5.0) - act(actor, 3.0)).abs().max() > 1e-3


def load_jit(actor, folder):
    torch.jit.script(actor.as_jit()).save(str(folder / "policy.pt"))
    return torch.jit.load(str(folder / "policy.pt"))


def load_onnx(actor, folder):
    """Return the exported policy, run by onnx's reference implementation."""
    model = actor.as_onnx(verbose=False).eval()
    path = str(folder / "policy.onnx")
    torch.onnx.export(
        model, model.get_dummy_inputs(), path, input_names=model.input_names, output_names=model.output_names,
        opset_version=18, dynamo=False,
    )  # fmt: skip
    session = ReferenceEvaluator(path)
    inputs = model.get_dummy_inputs()

    class Policy:
        def __init__(self):
            self.reset()

        def reset(self):
            self.states = [torch.zeros_like(state).numpy() for state in inputs[1:]]

        def __call__(self, obs):
            feeds = dict(zip(model.input_names, [obs.numpy(), *self.states], strict=True))
            action, *self.states = session.run(None, feeds)
            return torch.from_numpy(action)

    return Policy()


def test_the_first_layer_is_a_linear_layer_on_observation_and_gene():
    torch.manual_seed(0)
    whole, table = nn.Linear(5 + 3, 7), torch.randn(4, 3, requires_grad=True)
    obs, ids, weights = torch.randn(20, 5), torch.randint(0, 4, (20,)), torch.randn(20, 7)
    results = []
    for split in (False, True):
        whole.zero_grad()
        table.grad = None
        out = GeneLinear(whole)((obs, table, ids)) if split else whole(torch.cat([obs, table[ids]], dim=-1))
        (weights * out.tanh()).sum().backward()
        results.append([out, whole.weight.grad, whole.bias.grad, table.grad])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_an_exported_policy_takes_any_batch_and_says_how_to_use_it(recurrent, tmp_path):
    _, algorithm = population(recurrent)
    facts = {"step_dt": 0.02, "observations": [{"name": "joint_pos", "size": 5, "scale": [1.0, 2.0]}]}
    _, path = export_policy(algorithm.policy(3), tmp_path / "policy_3", facts)
    content = onnx.load(str(path))
    assert {prop.key: json.loads(prop.value) for prop in content.metadata_props} == facts
    session = ReferenceEvaluator(content)
    obs = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    feeds = {"obs": obs.numpy()}
    for name in session.input_names[1:]:
        layers, _, width = algorithm.policy().as_onnx(verbose=False).get_dummy_inputs()[1].shape
        feeds[name] = np.zeros((layers, 7, width), np.float32)
    actor = algorithm.get_policy()
    actor.reset()
    rows = TensorDict({"policy": obs, "agent_id": torch.full((7, 1), 3)}, [7])
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(session.run(None, feeds)[0]), actor(rows), rtol=0, atol=1e-6)


def test_facts_name_observations_joints_and_rates():
    group = SimpleNamespace(angles=SimpleNamespace(scale=0.5), image=SimpleNamespace(scale=None))
    sizes = {"policy": [(3,), (2, 4)]}
    seen = SimpleNamespace(
        active_terms={"policy": ["angles", "image"]}, group_obs_term_dim=sizes, cfg=SimpleNamespace(policy=group)
    )
    cfg = SimpleNamespace(scale=0.25, offset=0.0, clip={"a": (-1.0, 1.0)})
    pose = torch.tensor([[0.5, -0.5]]).expand(3, 2)
    legs = SimpleNamespace(cfg=cfg, action_dim=2, _joint_names=["a", "b"], _scale=0.25, _offset=pose)
    acts = SimpleNamespace(active_terms=["legs"], get_term=lambda name: legs)
    facts = describe(SimpleNamespace(step_dt=0.02, observation_manager=seen, action_manager=acts), ["policy"])
    assert facts["step_dt"] == 0.02
    assert facts["observations"] == [
        {"name": "angles", "size": 3, "scale": 0.5},
        {"name": "image", "size": 8, "scale": None},
    ]
    (action,) = facts["actions"]
    assert (action["joints"], action["scale"], action["clip"]) == (["a", "b"], 0.25, {"a": [-1.0, 1.0]})
    assert action["offset"] == [0.5, -0.5], "the pose itself, not that there is one"
    assert describe(object(), ["policy"]) == {}, "a diagnostic has no joints"
