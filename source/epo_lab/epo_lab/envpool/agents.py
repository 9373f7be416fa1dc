"""Agents for EnvPool's tasks: one PPO for all of them, with settings that are usual on MuJoCo, and a preset on top."""

from __future__ import annotations

from typing import Any

from epo_lab.configs.plain import sections

from .tasks import PREFIX

NUM_ENVS = 96
"""Divisible by the 6 agents of SAPG and the 8 of EPO."""
STEPS = 1_000_000
"""Environment steps of a run."""


def agent_settings(task: str, agent: str) -> dict[str, Any]:
    """Return ``env`` and ``agent`` settings of a task with a preset."""
    model: dict[str, Any] = {
        "class_name": "MLPModel",
        "hidden_dims": [64, 64],
        "activation": "tanh",
        "obs_normalization": True,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": 0.6, "std_type": "log"}
    made = sections(
        agent,
        num_envs=NUM_ENVS,
        ppo=_PPO,
        changes=_CHANGES,
        replay=_REPLAY_RUN,
        size="cpu",
        experiment_name=f"envpool/{task.removeprefix(PREFIX).replace('/', '_')}",
        num_steps_per_env=32,
        init_at_random_ep_len=False,
        actor={**model, "distribution_cfg": gaussian},
        critic=dict(model),
    )
    made["env"]["num_threads"] = 0
    # a million steps, whatever the number of environments
    made["agent"]["max_iterations"] = -(-STEPS // (made["env"]["num_envs"] * made["agent"]["num_steps_per_env"]))
    return made


_PPO = {
    "num_learning_epochs": 8,
    "num_mini_batches": 8,
    "learning_rate": 3e-4,
    "schedule": "adaptive",
    "desired_kl": 0.012,
    "gamma": 0.99,
    "lam": 0.95,
    "clip_param": 0.2,
    "value_loss_coef": 1.0,
    "use_clipped_value_loss": True,
    "entropy_coef": 0.0,
    "max_grad_norm": 1.0,
}

_CHANGES = {
    "normalize_value": True,
    "evolution": {"warmup_steps": 2500, "interval_steps": 1250},
    "pbt": {"interval_steps": 1250, "start_after_steps": 2500, "initial_delay_steps": 2500},
}
"""Returns go up to thousands, so the critic predicts normalised values. Intervals are at least two full episodes."""

_REPLAY_RUN = {"env": {"num_envs": 1}, "agent": {"save_interval": 20_000}}
"""Agents that learn from a replay: one environment, so that a gradient step a step is what it says."""
