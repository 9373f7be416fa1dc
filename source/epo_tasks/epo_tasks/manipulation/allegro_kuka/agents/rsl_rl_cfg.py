"""Settings of the reference trainer; the same for all eight tasks.

Where the reference shares the network between actor and critic, rsl_rl has one each.
"""

from typing import Any

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg

from epo_lab.cfg.isaac import EpoAlgorithmCfg, EpoRunnerCfg, LatentRnnModelCfg

GAUSSIAN = RslRlMLPModelCfg.GaussianDistributionCfg(init_std=1.0, std_type="log")


def lstm(**changes: Any) -> LatentRnnModelCfg:
    """Return the papers' network: LSTM, layer norm, MLP."""
    return LatentRnnModelCfg(
        rnn_type="lstm",
        rnn_hidden_dim=768,
        rnn_num_layers=1,
        hidden_dims=[768, 512, 256],
        activation="elu",
        obs_normalization=True,
        **changes,
    )


@configclass
class KukaAlgorithmCfg(EpoAlgorithmCfg):
    """PPO, as one agent of a population."""

    num_agents: int = 1
    num_learning_epochs: int = 2
    num_mini_batches: int = 4
    learning_rate: float = 1.0e-4
    schedule: str = "adaptive"
    kl_schedule: str = "epoch"
    desired_kl: float = 0.016
    lr_min: float = 1.0e-6
    gamma: float = 0.99
    lam: float = 0.95
    clip_param: float = 0.1
    entropy_coef: float = 0.0
    # the reference's loss is half the squared error times 4
    value_loss_coef: float = 2.0
    use_clipped_value_loss: bool = True
    max_grad_norm: float = 1.0
    bounds_loss_coef: float = 1.0e-4
    normalize_value: bool = True
    reward_scale: float = 0.01


@configclass
class KukaLstmCfg(EpoRunnerCfg):
    """LSTM, layer norm, MLP: the network of every published score."""

    num_steps_per_env = 16
    max_iterations = 25_000
    save_interval = 200
    clip_actions = 1.0
    obs_groups = {"actor": ["policy"], "critic": ["policy"]}
    actor = lstm(distribution_cfg=GAUSSIAN)
    critic = lstm()
    algorithm = KukaAlgorithmCfg()


@configclass
class KukaMlpCfg(KukaLstmCfg):
    """The plain MLP of IsaacGymEnvs."""

    actor = RslRlMLPModelCfg(
        hidden_dims=[1024, 1024, 512, 512], activation="elu", obs_normalization=True, distribution_cfg=GAUSSIAN
    )
    critic = RslRlMLPModelCfg(hidden_dims=[1024, 1024, 512, 512], activation="elu", obs_normalization=True)
    algorithm = KukaAlgorithmCfg(num_learning_epochs=4)
