"""EPO finds the best of several basins, and does not when the master learns the wrong thing from the others' data."""

import pytest
import torch

from epo_lab.algorithms.on_policy.epo import EPO
from epo_lab.diagnostics.agents import NUM_ENVS, agent_settings
from epo_lab.diagnostics.deceptive import DeceptiveEnv
from epo_lab.runner.runner import EpoRunner

pytestmark = pytest.mark.learning

TASK = "Epo-Diag-Deceptive-v0"
SEED = 4


class FromOthersOnly(EPO):
    """A master that learns from relabelled rows alone, and much: their one-step advantages are small next to GAE's."""

    factor = 10.0

    def compute_returns(self, obs):
        super().compute_returns(obs)
        self.storage.advantages[:, : self.storage.num_envs][:, self.agent_ids == 0] = 0.0

    def _relabel(self, last_obs, rewards):
        weights = super()._relabel(last_obs, rewards)
        self.storage.advantages[:, self.storage.num_envs :] *= self.factor
        return weights


class WrongFromOthersOnly(FromOthersOnly):
    """The same with V - y instead of y - V."""

    factor = -10.0


def final_score(algorithm: type[EPO], seed: int = SEED) -> float:
    """Train with our default agent and return the master's deterministic score."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    cfg = agent_settings(TASK, "epo")["agent"] | {"seed": seed}
    cfg["algorithm"]["class_name"] = algorithm
    runner = EpoRunner(DeceptiveEnv(NUM_ENVS, seed=seed), cfg)
    runner.learn(70, init_at_random_ep_len=True)
    env = DeceptiveEnv(512, seed=1000 + seed)
    policy = runner.get_inference_policy()
    with torch.inference_mode():
        for _ in range(env.horizon):
            _, _, _, extras = env.step(policy(env.get_observations()))
    return float(extras["score"].mean())


def test_the_master_reaches_the_best_basin():
    # above 0.8 it is in the best of the eight basins
    assert final_score(EPO) > 0.8


def test_the_master_learns_from_others_and_not_with_the_wrong_advantage():
    assert final_score(FromOthersOnly) > 0.5
    assert final_score(WrongFromOthersOnly) < 0.3
