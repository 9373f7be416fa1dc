"""Register an in-hand task."""

from typing import Any

import gymnasium as gym

from epo_lab.cfg.presets import agent_entry_points
from epo_lab.population.pbt import PbtOptions

_AGENTS = "epo_tasks.manipulation.in_hand.agents.rsl_rl_cfg"


def register(hand: str, env_cfg: str, ppo: str, entropy_coef_scale: float, cpo: dict[str, Any]) -> None:
    """Register ``Epo-<hand>Hand-Reorient-v0``.

    Args:
        hand: Name of the hand.
        env_cfg: Config of the task, as ``module:Class``.
        ppo: Class of its PPO config.
        entropy_coef_scale: How much more the last follower of a population explores.
        cpo: Settings of CPO that differ on this task.
    """
    gym.register(
        id=f"Epo-{hand}Hand-Reorient-v0",
        entry_point="epo_tasks.envs.env:EpoEnv",
        disable_env_checker=True,
        kwargs={
            "env_cfg_entry_point": env_cfg,
            "default_agent": "rsl_rl",
            "metric": "Metrics/episode_return",
            **agent_entry_points(
                f"{_AGENTS}:{ppo}",
                experiment_name=f"{hand.lower()}_hand_reorient",
                ga_gamma=0.3,
                latent_init_std=1.0,
                entropy_coef_scale=entropy_coef_scale,
                by_agent={
                    "cpo": {"discriminator_hidden_dims": (1024, 1024, 512, 512), **cpo},
                    # here the reference mutates the learning rate too
                    "pbt": {"pbt_mutated": {**PbtOptions().pbt_mutated, "learning_rate": "factor"}},
                },
            ),
        },
    )
