"""The tool that follows the children of every operator."""

import importlib.util

import pytest
import torch

from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.deceptive import DeceptiveEnv
from epo_lab.runner.runner import EpoRunner
from support.command import ROOT

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def children():
    spec = importlib.util.spec_from_file_location("children", ROOT / "tools/children.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    torch.manual_seed(0)
    settings = agent_settings("Epo-Diag-Deceptive-v0", "epo")["agent"]
    settings["algorithm"]["num_agents"] = 8
    EpoRunner(DeceptiveEnv(64), settings, log_dir=str(folder)).learn(2)
    return folder / "model_1.pt"


def test_the_policy_is_the_actors_own(children, checkpoint):
    """The tool reads weights itself: its actions are those of the network for every agent."""
    population = children.Population(checkpoint)
    settings = agent_settings("Epo-Diag-Deceptive-v0", "epo")["agent"]
    settings["algorithm"]["num_agents"] = 8
    env = DeceptiveEnv(64)
    runner = EpoRunner(env, settings, log_dir=None)
    runner.load(str(checkpoint))
    algorithm = runner.alg
    obs = algorithm._label(env.get_observations())
    algorithm.actor(obs, stochastic_output=True)
    genes = population.genes[algorithm.agent_ids]
    torch.testing.assert_close(population.act(env.observe(), genes), algorithm.actor.output_mean)


def test_children_of_twins_go_where_their_parents_go_and_immigrants_elsewhere(children, checkpoint):
    population = children.Population(checkpoint)
    population.genes[:] = population.genes[0]
    population.taken = population.basins(population.genes, 0.0, 1)[1].any(dim=0)
    twins = population.children(children.OPERATORS["uniform, no mutation"])
    torch.testing.assert_close(twins, population.genes[:1].expand_as(twins))
    novel = population.children(children.OPERATORS["immigrants, the most novel of 64"])
    plain = population.children(children.OPERATORS["immigrants"])
    far = [
        (
            population.act(population.states[:1].expand(len(g), -1), g)
            - population.act(population.states[:1], population.genes[:1])
        )
        .norm(dim=1)
        .mean()
        for g in (novel, plain)
    ]
    assert far[0] > far[1] > 0.0
