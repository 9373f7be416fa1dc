"""Networks and trainers that the agents of several tasks share; each task names what is its own."""

from __future__ import annotations

from typing import Any

from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlPpoAlgorithmCfg

from epo_lab.configs.isaac import EpoAlgorithmCfg


def gaussian(init_std: float = 1.0) -> RslRlMLPModelCfg.GaussianDistributionCfg:
    """Return the actions of every reference trainer: one standard deviation for each, 1 at first."""
    return RslRlMLPModelCfg.GaussianDistributionCfg(init_std=init_std, std_type="log")


OBS_GROUPS = {"actor": ["policy"], "critic": ["policy"]}
"""Actor and critic see the same."""


def actor(hidden_dims: list[int], *, normalize: bool, init_std: float = 1.0) -> RslRlMLPModelCfg:
    """Return an ELU network that gives actions."""
    return RslRlMLPModelCfg(
        hidden_dims=hidden_dims,
        activation="elu",
        obs_normalization=normalize,
        distribution_cfg=gaussian(init_std),
    )


def critic(hidden_dims: list[int], *, normalize: bool) -> RslRlMLPModelCfg:
    """Return an ELU network that gives values."""
    return RslRlMLPModelCfg(hidden_dims=hidden_dims, activation="elu", obs_normalization=normalize)


def legged_gym_trainer(**own: Any) -> RslRlPpoAlgorithmCfg:
    """Return rsl_rl's PPO as the walking robots' references set it."""
    common = {
        "num_learning_epochs": 5,
        "schedule": "adaptive",
        "gamma": 0.99,
        "lam": 0.95,
        "clip_param": 0.2,
        "value_loss_coef": 1.0,
        "use_clipped_value_loss": True,
        "max_grad_norm": 1.0,
    }
    return RslRlPpoAlgorithmCfg(**(common | own))


def isaac_gym_trainer(**own: Any) -> EpoAlgorithmCfg:
    """Return PPO, as one agent of a population, as Isaac Gym's tasks set it: scaled rewards, normalized values."""
    common = {
        "num_agents": 1,
        "num_learning_epochs": 5,
        "num_mini_batches": 4,
        "learning_rate": 5.0e-4,
        "schedule": "adaptive",
        "kl_schedule": "epoch",
        "lr_min": 1.0e-6,
        "gamma": 0.99,
        "lam": 0.95,
        "clip_param": 0.2,
        "entropy_coef": 0.0,
        # the reference's loss is half the squared error times 4
        "value_loss_coef": 2.0,
        "use_clipped_value_loss": True,
        "max_grad_norm": 1.0,
        "bounds_loss_coef": 1.0e-4,
        "normalize_value": True,
        "reward_scale": 0.01,
    }
    return EpoAlgorithmCfg(**(common | own))
