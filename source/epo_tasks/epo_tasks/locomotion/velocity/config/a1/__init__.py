"""Unitree A1 on flat ground."""

import gymnasium as gym

from epo_lab.cfg.presets import agent_entry_points

gym.register(
    id="Epo-A1-Flat-v0",
    entry_point="epo_tasks.envs.env:EpoEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.flat_env_cfg:A1FlatEnvCfg",
        **agent_entry_points(f"{__name__}.agents.rsl_rl_cfg:A1FlatPpoCfg", ga_gamma=0.5),
        "default_agent": "rsl_rl",
        "metric": "Metrics/episode_return",
    },
)
