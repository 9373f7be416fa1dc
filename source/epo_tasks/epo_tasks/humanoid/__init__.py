"""The Control Suite's humanoid runs."""

import gymnasium as gym

from epo_lab.configs.presets import agent_entry_points

gym.register(
    id="Epo-Humanoid-Run-v0",
    entry_point="epo_tasks.common.env:EpoEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.env_cfg:HumanoidRunEnvCfg",
        **agent_entry_points(f"{__name__}.agents.rsl_rl_cfg:HumanoidRunPpoCfg", ga_gamma=0.5),
        "default_agent": "rsl_rl",
        "metric": "Metrics/episode_return",
    },
)
