"""ANYmal C on flat ground."""

import gymnasium as gym

gym.register(
    id="Epo-Anymal-Flat-v0",
    entry_point="epo_tasks.envs.env:EpoEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.flat_env_cfg:AnymalFlatEnvCfg",
        "rsl_rl_cfg_entry_point": f"{__name__}.agents.rsl_rl_cfg:AnymalFlatPpoCfg",
        "rsl_rl_ppo_cfg_entry_point": f"{__name__}.agents.rsl_rl_cfg:AnymalFlatPpoCfg",
        "default_agent": "rsl_rl",
        "metric": "Metrics/episode_return",
    },
)
