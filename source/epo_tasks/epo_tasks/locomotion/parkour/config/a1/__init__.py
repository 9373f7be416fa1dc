"""Parkour of the Unitree A1."""

import gymnasium as gym

from epo_lab.cfg.presets import agent_entry_points

gym.register(
    id="Epo-A1-Parkour-v0",
    entry_point="epo_tasks.envs.env:EpoEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.env_cfg:A1ParkourEnvCfg",
        **agent_entry_points(
            f"{__name__}.agents.rsl_rl_cfg:A1ParkourPpoCfg",
            fitness="extras:terrain_level",
            ga_gamma=0.5,
            fitness_floor=0.5,
            # an environment's level is its last agent's work for some episodes
            fitness_min_episodes=3,
            bounds_loss_coef=1.0e-5,
        ),
        "default_agent": "rsl_rl",
        "metric": "Metrics/terrain_level",
    },
)
