"""Agents for EnvPool's tasks: one PPO for all of them, with settings that are usual on MuJoCo, and a preset on top."""

from __future__ import annotations

from typing import Any

from epo_lab.algorithms import registry
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
        replay={},
        size="cpu",
        experiment_name=f"envpool/{task.removeprefix(PREFIX).replace('/', '_')}",
        num_steps_per_env=32,
        init_at_random_ep_len=False,
        actor={**model, "distribution_cfg": gaussian},
        critic=dict(model),
    )
    made["env"]["num_threads"] = 0
    settings = made["agent"]["algorithm"]
    row = registry.find(settings)
    if not row.is_ppo:
        # one environment a member, and short roll-outs, which overshoot the end of a generation by little
        members = made["env"]["num_envs"] = row.num_agents(settings, 1)
        made["agent"]["num_steps_per_env"] = 32 if members == 1 else 8
        if row.final_obs:
            # a gradient step for every environment step that is learned from
            settings["updates_per_step"] = float(members)
    if "esac" in settings:
        _set_esac(settings, task.removeprefix(PREFIX).rpartition("-v")[0])
    elif "es" in settings:
        settings["es"] |= {"sigma": 0.03, "learning_rate": 0.03}
    # a million steps, whatever the number of environments
    made["agent"]["max_iterations"] = -(-STEPS // (made["env"]["num_envs"] * made["agent"]["num_steps_per_env"]))
    if not row.is_ppo:
        made["agent"]["save_interval"] = made["agent"]["max_iterations"] // 10
    return made


def _set_esac(settings: dict[str, Any], name: str) -> None:
    """Set what ESAC's paper chose for each task."""
    settings["esac"]["sac_episodes"] = _SAC_EPISODES.get(name, 10)
    if name in _CONTROL_SUITE:
        settings["es"] |= {"sigma": 1e-2, "learning_rate": 1e-2}
    elif name == "Ant":
        settings["es"]["learning_rate"] = 1e-4


_CONTROL_SUITE = ("HumanoidStand", "HumanoidWalk", "HumanoidRun", "CheetahRun", "WalkerWalk", "FishUpright")
_FIVE = ("HalfCheetah", "LunarLanderContinuous", "Reacher", "InvertedDoublePendulum", "WalkerWalk")
_SAC_EPISODES = {**dict.fromkeys((*_CONTROL_SUITE, "Swimmer"), 1), **dict.fromkeys(_FIVE, 5)}

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
