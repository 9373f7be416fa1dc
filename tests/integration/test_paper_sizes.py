"""``--profile paper`` of every task with every agent on torch's meta device, whose tensors have no content.

Networks, roll-outs, replays and members have the task's own observations, actions and number of environments, so that
sizes and shapes are right before anyone pays for a GPU. What stays out is the noise of evolution strategies, which is
drawn on the host.
"""

import argparse
from itertools import pairwise

import pytest
import torch
from isaaclab_tasks.utils.hydra import resolve_presets
from isaaclab_tasks.utils.parse_cfg import load_cfg_from_registry
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from epo_lab.algorithms.off_policy.members import Members
from epo_lab.algorithms.registry import find
from epo_lab.commands.backends.base import make_backend
from epo_lab.commands.backends.isaac import runner_settings
from epo_lab.commands.tasks import agent_entry_point, find_task
from epo_lab.configs.names import task_table
from epo_lab.models.latent import GeneLinear
from epo_tasks.registry import TASKS
from support.command import ROOT
from support.dimensions import dimensions

pytestmark = pytest.mark.integration

TWO_ARMS = "Epo-Kuka-TwoArm-Reorient-v0"
PAPER = 24_576
"""Environments of the papers."""
DEVICE = "meta"
LAYERS = (torch.nn.Linear, torch.nn.LSTM, torch.nn.GRU, torch.nn.LayerNorm, GeneLinear)
OPTIONS = ("experiment", "device", "viz", "logger", "num_envs", "seed", "max_iterations", "run_name")


class PaperEnv:
    """Observations and actions of a task in the paper's number of environments."""

    device, cfg = DEVICE, {}

    def __init__(self, task, num_envs):
        size = dimensions()[task]
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, size["actions"], size["length"]
        self.sizes = size["observations"]

    def get_observations(self):
        groups = {name: torch.empty(self.num_envs, size, device=DEVICE) for name, size in self.sizes.items()}
        return TensorDict(groups, batch_size=[self.num_envs])


@pytest.fixture(autouse=True)
def no_generators_without_content(monkeypatch):
    """Let what draws on the meta device take a generator of the host: it has none of its own, and draws nothing."""
    make = torch.Generator
    monkeypatch.setattr(torch, "Generator", lambda device="cpu": make("cpu" if str(device) == DEVICE else device))


def by_command(task, agent):
    """Return agent and number of environments of ``train.py --task TASK --agent AGENT --profile paper``."""
    nothing = dict.fromkeys((*OPTIONS, "experiment_name", "log_project_name"))
    backend = make_backend(find_task(task))
    backend.resolve(argparse.Namespace(**nothing, profile="paper", agent=agent), [], ROOT / "config")
    backend.check_training()
    return backend.settings, backend.num_envs


def by_registry(task, agent):
    """Return the same without the config of the environment, which takes most of the time."""
    cfg = load_cfg_from_registry(task, agent_entry_point(find_task(task), agent))
    settings = runner_settings(resolve_presets(cfg, ("paper",)))
    row, num_envs = find(settings["algorithm"]), int(task_table()[task].sizes.split("/")[-1])
    number = row.num_agents(settings["algorithm"], num_envs)
    num_envs = -(-num_envs // number) * number
    row.check(settings, num_envs, 1)
    return settings, num_envs


def network(settings, inputs, outputs):
    """Return the number of parameters of a network as its settings describe it."""
    number = 0
    if "rnn_type" in settings:
        gates, hidden = {"lstm": 4, "gru": 3}[settings["rnn_type"]], settings["rnn_hidden_dim"]
        for layer in range(settings["rnn_num_layers"]):
            number += gates * hidden * ((hidden if layer else inputs) + hidden + 2)
        number += 2 * hidden if settings.get("rnn_layer_norm") else 0
        inputs = hidden
    sizes = [inputs, *settings["hidden_dims"], outputs]
    return number + sum((a + 1) * b for a, b in pairwise(sizes))


def weights(model):
    """Return the number of parameters of a model's layers; genes and noise are no part of them."""
    layers = [layer for layer in model.modules() if isinstance(layer, LAYERS)]
    return sum(parameter.numel() for layer in layers for parameter in layer.parameters())


def seen(settings, env, name):
    return sum(env.sizes[group] for group in settings["obs_groups"][name])


def check_on_policy(policy, env, obs, settings, num_agents):
    """Check networks and roll-out of a policy that plays in all of ``env``."""
    steps, storage, genes = settings["num_steps_per_env"], policy.storage, 0
    for name, size in env.sizes.items():
        if name in {*settings["obs_groups"]["actor"], *settings["obs_groups"]["critic"]}:
            assert storage.observations[name].shape == (steps, env.num_envs, size)
    assert storage.actions.shape == (steps, env.num_envs, env.num_actions)
    relabelled = storage.num_relabelled if num_agents > 1 else 0
    assert storage.values.shape == (steps, env.num_envs + relabelled, 1)
    if num_agents > 1:
        genes = policy.actor.genes.shape[1]
        assert len(policy.actor.genes) == num_agents
    actor, critic = (seen(settings, env, name) + genes for name in ("actor", "critic"))
    assert weights(policy.actor) == network(settings["actor"], actor, env.num_actions)
    assert weights(policy.critic) == network(settings["critic"], critic, 1)
    with torch.no_grad():
        assert policy.actor(obs).shape == (env.num_envs, env.num_actions)
        assert policy.critic(obs).shape == (env.num_envs, 1)


def check_replay(algorithm, env, obs, settings):
    """Check networks and replay of an agent that learns from one."""
    options, replay = algorithm.options, algorithm.replay
    assert replay.num_envs == env.num_envs
    assert replay.rows * env.num_envs >= max(options.replay.size, env.num_envs * settings["num_steps_per_env"])
    sizes = sum(env.sizes[name] for name in {*settings["obs_groups"]["actor"], *settings["obs_groups"]["critic"]})
    floats = 4 if options.replay.dtype == "float32" else 2
    assert replay.num_bytes >= replay.rows * env.num_envs * (floats * sizes + 4 * env.num_actions + 4)
    with torch.no_grad():
        actions = algorithm.actor(obs)
        assert actions.shape == (env.num_envs, env.num_actions)
        values = algorithm.critic(algorithm.critic.latent(obs), actions)
    assert values.shape[:2] == (2, env.num_envs) and values[0].numel() == env.num_envs * options.critic.atoms
    inputs = seen(settings, env, "critic") + env.num_actions
    plain = {"hidden_dims": settings["critic"]["hidden_dims"]}
    found = sum(p.numel() for p in algorithm.critic.net.parameters() if p.dim() > 1)
    expected = network(plain, inputs, options.critic.atoms)
    assert found in (2 * expected, 2 * (expected + 2 * sum(plain["hidden_dims"]))), "with or without layer norm"


def check_members(algorithm, env, obs, settings, number):
    """Check a population of weights that plays in all of ``env``."""
    members = Members(algorithm.actor, env, number, algorithm.options.fitness, 0, DEVICE)
    one = (
        dict(settings["actor"])
        if settings["algorithm"]["class_name"].endswith(":ES")
        else {"hidden_dims": settings["actor"]["hidden_dims"]}
    )
    outputs = algorithm.actor.distribution.per_action * env.num_actions
    assert members.policies.rows.shape == (number, network(one, seen(settings, env, "actor"), outputs))
    assert members.policies(obs).shape == (env.num_envs, env.num_actions)


def check(task, settings, num_envs):
    settings = {**settings, "multi_gpu": None}
    algorithm_settings = settings["algorithm"]
    row = find(algorithm_settings)
    number = row.num_agents(algorithm_settings, num_envs)
    assert PAPER <= num_envs < PAPER + number and num_envs % number == 0
    env = PaperEnv(task, num_envs)
    obs = env.get_observations()
    plays_weights = not row.is_ppo and number > 1
    if plays_weights:
        # the first weights of all are drawn on the host: members come below
        settings["algorithm"] = {**algorithm_settings, "num_agents": 1}
    made = resolve_callable(settings["algorithm"]["class_name"]).construct_algorithm(obs, env, settings, DEVICE)
    if "pbt" in algorithm_settings:
        share = PaperEnv(task, env.num_envs // number)
        assert len(made.policies) == number
        check_on_policy(made.policies[-1], share, share.get_observations(), settings, 1)
    elif row.is_ppo:
        check_on_policy(made, env, obs, settings, number)
    elif hasattr(made, "replay"):
        check_replay(made, env, obs, settings)
    if plays_weights:
        check_members(made, env, obs, settings, number)
    tensors = [*made.actor.parameters()] if "pbt" not in algorithm_settings else [*made.policies[0].actor.parameters()]
    assert tensors and all(tensor.device.type == DEVICE for tensor in tensors)


def check_named(task, agent, settings, num_envs):
    try:
        check(task, settings, num_envs)
    except Exception as error:
        error.add_note(f"{task} with --agent {agent} --profile paper")
        raise


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_agent_of_a_task_is_constructed_at_the_size_of_the_paper(task):
    agents = task_table()[task].agents
    assert len(agents) >= 18
    for agent in agents:
        check_named(task, agent, *by_registry(task, agent))


@pytest.mark.parametrize("agent", ["epo", "es"])
def test_what_the_command_would_run_is_constructed(agent):
    settings, num_envs = by_command(TWO_ARMS, agent)
    check_named(TWO_ARMS, agent, settings, num_envs)
    other, same_envs = by_registry(TWO_ARMS, agent)
    assert num_envs == same_envs
    for section in ("actor", "critic", "algorithm", "num_steps_per_env", "obs_groups"):
        assert settings[section] == other[section], section


def test_the_papers_numbers_of_agents():
    expected = {"ppo": 1, "sapg": 6, "cpo": 6, "epo": 64, "epo_paper": 64, "epo_release": 64}
    found = {agent: by_registry(TWO_ARMS, agent)[0]["algorithm"].get("num_agents", 1) for agent in expected}
    assert found == expected
