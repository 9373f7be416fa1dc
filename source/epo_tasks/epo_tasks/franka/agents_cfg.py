"""Settings of CPO's paper (its table 5), the same for both tasks and for PPO, SAPG and CPO.

Where the reference shares the network between actor and critic, rsl_rl has one each. Sizes: ``paper`` has the paper's
5e9 steps; ``gpu`` is an estimate with half of its environments, which nobody has run yet; ``cpu`` has a small network
and longer roll-outs in the place of environments.
"""

from typing import Any

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg, LatentRnnModelCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, gaussian, isaac_gym_trainer


def lstm(**changes: Any) -> LatentRnnModelCfg:
    """Return the paper's network: LSTM, layer norm, MLP."""
    return LatentRnnModelCfg(
        rnn_type="lstm",
        rnn_hidden_dim=size(256, cpu=128),
        rnn_num_layers=1,
        hidden_dims=size([256, 128, 64], cpu=[128, 64]),
        activation="elu",
        obs_normalization=True,
        obs_clip=5.0,
        **changes,
    )


@configclass
class FrankaPpoCfg(EpoRunnerCfg):
    """PPO, as one agent of a population.

    Rewards are not scaled, although success pays up to 1,196 in one step: values are normalised.
    """

    num_steps_per_env = size(16, cpu=32)
    max_iterations = size(13_000, cpu=1000, paper=12_716)
    save_interval = size(500, cpu=100)
    keep_checkpoints = 10
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = lstm(distribution_cfg=gaussian())
    critic = lstm()
    algorithm = isaac_gym_trainer(num_learning_epochs=8, desired_kl=0.008, reward_scale=1.0)
