"""Plain rsl_rl PPO on ANYmal flat."""

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlPpoAlgorithmCfg

from epo_lab.cfg.isaac import EpoRunnerCfg


@configclass
class AnymalFlatPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference task."""

    experiment_name = "anymal_flat"
    num_steps_per_env = 24
    max_iterations = 1000
    save_interval = 50
    clip_actions = 1.0
    obs_groups = {"actor": ["policy"], "critic": ["policy"]}
    actor = RslRlMLPModelCfg(
        hidden_dims=[256, 128, 64],
        activation="elu",
        obs_normalization=False,
        distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=1.0, std_type="log"),
    )
    critic = RslRlMLPModelCfg(hidden_dims=[256, 128, 64], activation="elu", obs_normalization=False)
    algorithm = RslRlPpoAlgorithmCfg(
        num_learning_epochs=5,
        num_mini_batches=3,
        learning_rate=3.0e-4,
        schedule="adaptive",
        desired_kl=0.008,
        gamma=0.99,
        lam=0.95,
        clip_param=0.2,
        entropy_coef=0.0,
        value_loss_coef=1.0,
        use_clipped_value_loss=True,
        max_grad_norm=1.0,
    )
