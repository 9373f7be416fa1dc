"""Settings of the reference trainer; the same for all eight tasks.

Where the reference shares the network between actor and critic, rsl_rl has one each. Sizes: ``paper`` has the papers'
1e10 transitions; ``gpu`` is an estimate for 24 GB, 8 agents of 768 environments (SAPG: 6 of 1,024), which nobody has
run yet; ``cpu`` has a small network, explores less and learns faster, and its observations are not clipped (the runs of
docs/results/kuka_cpu were trained so).
"""

from typing import Any

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoAlgorithmCfg, EpoRunnerCfg, LatentMlpModelCfg, LatentRnnModelCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, gaussian, isaac_gym_trainer

INPUT = {"activation": "elu", "obs_normalization": True, "obs_clip": size(5.0, cpu=None)}
"""What both networks have."""


def lstm(**changes: Any) -> LatentRnnModelCfg:
    """Return the papers' network: LSTM, layer norm, MLP."""
    return LatentRnnModelCfg(
        rnn_type="lstm",
        rnn_hidden_dim=size(768, cpu=128),
        rnn_num_layers=1,
        hidden_dims=size([768, 512, 256], cpu=[128, 128]),
        **INPUT,
        **changes,
    )


def mlp(**changes: Any) -> LatentMlpModelCfg:
    """Return the network of IsaacGymEnvs."""
    return LatentMlpModelCfg(hidden_dims=size([1024, 1024, 512, 512], cpu=[128, 128]), **INPUT, **changes)


def kuka_trainer(epochs: int) -> EpoAlgorithmCfg:
    """Return PPO, as one agent of a population."""
    return isaac_gym_trainer(
        num_learning_epochs=size(epochs, cpu=4),
        num_mini_batches=size(4, cpu=2),
        learning_rate=size(1.0e-4, cpu=5.0e-4),
        desired_kl=0.016,
        clip_param=size(0.1, cpu=0.2),
    )


@configclass
class KukaLstmCfg(EpoRunnerCfg):
    """LSTM, layer norm, MLP: the network of every published score."""

    num_steps_per_env = 16
    max_iterations = size(50_000, cpu=1000, paper=25_432)
    save_interval = size(250, cpu=50, paper=500)
    keep_checkpoints = size(10, cpu=5)
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = lstm(distribution_cfg=gaussian(size(1.0, cpu=0.6)))
    critic = lstm()
    algorithm = kuka_trainer(epochs=2)


@configclass
class KukaMlpCfg(KukaLstmCfg):
    """The plain MLP of IsaacGymEnvs."""

    actor = mlp(distribution_cfg=gaussian(size(1.0, cpu=0.6)))
    critic = mlp()
    algorithm = kuka_trainer(epochs=4)
