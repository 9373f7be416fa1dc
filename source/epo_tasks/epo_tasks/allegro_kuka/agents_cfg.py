"""Settings of the reference trainer; the same for all eight tasks.

Where the reference shares the network between actor and critic, rsl_rl has one each.
"""

from typing import Any

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoAlgorithmCfg, EpoRunnerCfg, LatentMlpModelCfg, LatentRnnModelCfg
from epo_tasks.common.agents import GAUSSIAN, OBS_GROUPS, isaac_gym_trainer

INPUT = {"activation": "elu", "obs_normalization": True, "obs_clip": 5.0}
"""What both networks have."""


def lstm(**changes: Any) -> LatentRnnModelCfg:
    """Return the papers' network: LSTM, layer norm, MLP."""
    return LatentRnnModelCfg(
        rnn_type="lstm",
        rnn_hidden_dim=768,
        rnn_num_layers=1,
        hidden_dims=[768, 512, 256],
        **INPUT,
        **changes,
    )


def mlp(**changes: Any) -> LatentMlpModelCfg:
    """Return the network of IsaacGymEnvs."""
    return LatentMlpModelCfg(hidden_dims=[1024, 1024, 512, 512], **INPUT, **changes)


def kuka_trainer(epochs: int) -> EpoAlgorithmCfg:
    """Return PPO, as one agent of a population."""
    return isaac_gym_trainer(num_learning_epochs=epochs, learning_rate=1.0e-4, desired_kl=0.016, clip_param=0.1)


@configclass
class KukaLstmCfg(EpoRunnerCfg):
    """LSTM, layer norm, MLP: the network of every published score."""

    num_steps_per_env = 16
    max_iterations = 25_000
    save_interval = 200
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = lstm(distribution_cfg=GAUSSIAN)
    critic = lstm()
    algorithm = kuka_trainer(epochs=2)


@configclass
class KukaMlpCfg(KukaLstmCfg):
    """The plain MLP of IsaacGymEnvs."""

    actor = mlp(distribution_cfg=GAUSSIAN)
    critic = mlp()
    algorithm = kuka_trainer(epochs=4)
