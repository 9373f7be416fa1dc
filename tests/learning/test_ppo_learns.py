"""Plain PPO through our runner on real physics: an agent that learns stays on its legs longer."""

import statistics

import pytest
import torch

from epo_lab.commands.backends.isaac import runner_settings
from epo_lab.runner.runner import EpoRunner
from support.envs import make_env

pytestmark = pytest.mark.learning

TASK = "Epo-Anymal-Flat-v0"


def train(tmp_path, learning_rate: float, num_envs: int, iterations: int) -> tuple[float, float]:
    """Return mean episode length and return after some iterations."""
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper
    from isaaclab_tasks.utils import resolve_task_config

    overrides = ["agent.actor.distribution_cfg.init_std=0.5", f"agent.algorithm.learning_rate={learning_rate}"]
    if learning_rate == 0.0:
        overrides.append("agent.algorithm.schedule=fixed")
    _, agent_cfg = resolve_task_config(TASK, "rsl_rl_cfg_entry_point", overrides=overrides)
    torch.manual_seed(0)
    with make_env(TASK, num_envs=num_envs) as env:
        wrapped = RslRlVecEnvWrapper(env, clip_actions=agent_cfg.clip_actions)
        runner = EpoRunner(wrapped, runner_settings(agent_cfg), log_dir=str(tmp_path), device="cpu")
        runner.learn(iterations)
        return statistics.mean(runner.logger.lenbuffer), statistics.mean(runner.logger.rewbuffer)


def test_learning_beats_not_learning(tmp_path):
    length, reward = train(tmp_path / "learns", learning_rate=1e-3, num_envs=256, iterations=28)
    control_length, control_reward = train(tmp_path / "does_not", learning_rate=0.0, num_envs=64, iterations=8)
    assert length > 1.5 * control_length, (length, control_length)
    assert reward > 2.0 * control_reward, (reward, control_reward)
