"""Register an Allegro-Kuka task."""

from typing import Any

import gymnasium as gym

from epo_lab.cfg.presets import agent_entry_points

_AGENTS = "epo_tasks.manipulation.allegro_kuka.agents.rsl_rl_cfg"


def register(name: str, env_cfg: str, entropy_coef_scale: float, cpo: dict[str, Any] | None = None) -> None:
    """Register ``Epo-Kuka-<name>-v0``.

    Args:
        name: Name of the task.
        env_cfg: Its config, as ``module:Class``.
        entropy_coef_scale: How much more the last follower of a population explores.
        cpo: Settings of CPO that differ on this task. Defaults to None.
    """
    gym.register(
        id=f"Epo-Kuka-{name}-v0",
        entry_point="epo_tasks.envs.env:EpoEnv",
        disable_env_checker=True,
        kwargs={
            "env_cfg_entry_point": env_cfg,
            "default_agent": "rsl_rl",
            "metric": "Metrics/successes",
            **agent_entry_points(
                f"{_AGENTS}:KukaLstmCfg",
                default="epo",
                models={"mlp": f"{_AGENTS}:KukaMlpCfg"},
                experiment_name=f"kuka_{name.lower().replace('-', '_')}",
                fitness="extras:successes",
                ga_gamma=0.3,
                # below one success an episode a lucky one tells nothing
                fitness_floor=1.0,
                # with 23 and 46 actions genes twice as far apart make policies that learn nothing from each other
                latent_init_std=1.0,
                entropy_coef_scale=entropy_coef_scale,
                by_agent={"cpo": cpo or {}},
            ),
        },
    )
