"""ES, CEM-RL and ESAC solve the smooth diagnostic; ESAC's SAC actor does not if its targets are wrong."""

from typing import Any

import pytest
import torch

from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.runner.runner import EpoRunner

pytestmark = pytest.mark.learning


def trained(agent: str, iterations: int, change: Any = None) -> Any:
    """Return the algorithm after a short training, with batches changed before SAC's targets are computed."""
    sections = agent_settings("Epo-Diag-Smooth-v0", agent)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    runner = EpoRunner(SmoothEnv(sections["env"]["num_envs"], seed=1), sections["agent"])
    if change is not None:
        targets = runner.alg.learner.targets
        runner.alg.learner.targets = lambda batch, factor: targets(change(batch), factor)
    runner.learn(iterations, init_at_random_ep_len=True)
    return runner.alg


def score(policy: Any) -> float:
    """Return the mean score of a deterministic policy: 0 for doing nothing, 1 for the optimal controller."""
    env, scores = SmoothEnv(512, seed=7), torch.zeros(512)
    with torch.inference_mode():
        for _ in range(env.horizon):
            _, _, _, extras = env.step(policy(env.get_observations()))
            scores = extras["score"]
    return scores.mean().item()


@pytest.mark.parametrize(("agent", "iterations"), [("es", 150), ("esac", 400), ("cem_rl", 120)])
def test_it_solves_the_smooth_diagnostic(agent, iterations):
    assert score(trained(agent, iterations).policy()) > 0.9


def test_the_sac_actor_of_esac_fails_with_a_wrong_target():
    algorithm = trained("esac", 250, lambda batch: batch._replace(rewards=-batch.rewards))
    assert score(algorithm.actor) < 0.5
