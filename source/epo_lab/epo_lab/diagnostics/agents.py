"""Agents for the diagnostics: one PPO for all methods and tasks, onto which a preset is laid."""

from __future__ import annotations

from typing import Any

from epo_lab.configs.plain import sections

NUM_ENVS = 480
"""Divisible by the 6 agents of SAPG and the 8 of EPO."""
RECURRENT_TASKS = ("Epo-Diag-Memory-v0",)
ITERATIONS, RECURRENT_ITERATIONS = 120, 60
EXPLORATION = {"Epo-Diag-Cycle-v0": (0.5, 0.0)}
"""First standard deviation of the actions and entropy coefficient, where they differ from (1.0, 0.005). With more noise
chance alone finishes a round of the cycle often enough, and the task is not sparse any more."""


def agent_settings(task: str, agent: str) -> dict[str, Any]:
    """Return ``env`` and ``agent`` settings of a task with a preset."""
    model: dict[str, Any] = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    if task in RECURRENT_TASKS:
        model |= {"class_name": "RNNModel", "rnn_type": "lstm", "rnn_hidden_dim": 32, "rnn_num_layers": 1}
        model["hidden_dims"] = [32]
    init_std, entropy_coef = EXPLORATION.get(task, (1.0, 0.005))
    gaussian = {"class_name": "GaussianDistribution", "init_std": init_std, "std_type": "log"}
    return sections(
        agent,
        num_envs=NUM_ENVS,
        ppo={**_PPO, "entropy_coef": entropy_coef},
        changes=_SHORT_RUN,
        replay=_REPLAY_RUN,
        # environments in torch are fast enough for the population of a GPU
        size="gpu",
        experiment_name=task.removesuffix("-v0").removeprefix("Epo-").lower().replace("-", "_"),
        num_steps_per_env=16,
        max_iterations=RECURRENT_ITERATIONS if task in RECURRENT_TASKS else ITERATIONS,
        init_at_random_ep_len=True,
        actor={**model, "obs_normalization": False, "distribution_cfg": gaussian},
        critic={**model, "obs_normalization": False},
    )


_PPO = {
    "num_learning_epochs": 4,
    "num_mini_batches": 4,
    "learning_rate": 1e-3,
    "schedule": "adaptive",
    "desired_kl": 0.016,
    "gamma": 0.99,
    "lam": 0.95,
    "clip_param": 0.2,
    "value_loss_coef": 1.0,
    "use_clipped_value_loss": True,
    "max_grad_norm": 1.0,
}

_REPLAY_NETWORK = {"hidden_dims": [64, 64], "activation": "relu", "obs_normalization": True}
_REPLAY_RUN = {
    "env": {"num_envs": 32},
    "agent": {
        "num_steps_per_env": 4,
        "max_iterations": 400,
        "save_interval": 100,
        "actor": _REPLAY_NETWORK,
        "critic": _REPLAY_NETWORK,
        "algorithm": {
            "batch_size": 256,
            "updates_per_step": 4.0,
            "warmup_steps": 2000,
            "learning_rate": 1e-3,
            "tau": 0.02,
            "replay": {"size": 200_000},
        },
    },
}
"""Sizes for agents that learn from a replay: few environments and many gradient steps, about a minute on a core."""

_SHORT_RUN = {
    "fitness": {"source": "extras:score"},
    "evolution": {"floor": 0.05, "warmup_steps": 320, "interval_steps": 48},
    "pbt": {"interval_steps": 48, "start_after_steps": 96, "initial_delay_steps": 160},
    "census_interval": 10,
}
"""Fitness is the score; the genetic algorithm begins early, because a run is short (two episodes are the least)."""
