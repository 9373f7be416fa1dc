"""SAC solves the smooth diagnostic, and does not if its targets are wrong."""

import pytest
import torch

from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.runner.runner import EpoRunner

pytestmark = pytest.mark.learning

ITERATIONS = 110


def score_after_training(change=None) -> float:
    """Return the mean score of the deterministic policy: 0 for doing nothing, 1 for the optimal controller."""
    sections = agent_settings("Epo-Diag-Smooth-v0", "sac")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    runner = EpoRunner(SmoothEnv(sections["env"]["num_envs"], seed=1), sections["agent"])
    if change is not None:
        targets = runner.alg.learner.targets
        runner.alg.learner.targets = lambda batch, factor: targets(change(batch), factor)
    runner.learn(ITERATIONS, init_at_random_ep_len=True)

    env, scores = SmoothEnv(512, seed=7), torch.zeros(512)
    policy = runner.get_inference_policy("cpu")
    with torch.inference_mode():
        for _ in range(env.horizon):
            _, _, _, extras = env.step(policy(env.get_observations()))
            scores = extras["score"]
    return scores.mean().item()


def test_sac_solves_the_smooth_diagnostic():
    assert score_after_training() > 0.9


@pytest.mark.parametrize("what", ["sign", "bootstrap"])
def test_sac_fails_with_a_wrong_target(what):
    changes = {
        "sign": lambda batch: batch._replace(rewards=-batch.rewards),
        "bootstrap": lambda batch: batch._replace(discounts=torch.zeros_like(batch.discounts)),
    }
    assert score_after_training(changes[what]) < 0.6
