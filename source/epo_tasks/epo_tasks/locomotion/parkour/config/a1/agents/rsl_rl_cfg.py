"""Plain rsl_rl PPO on A1 parkour."""

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlPpoAlgorithmCfg

from epo_lab.cfg.isaac import EpoRunnerCfg


@configclass
class A1ParkourPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference, with a plain network."""

    experiment_name = "a1_parkour"
    num_steps_per_env = 24
    max_iterations = 10_000
    save_interval = 100
    clip_actions = 4.8
    obs_groups = {"actor": ["policy"], "critic": ["policy"]}
    actor = RslRlMLPModelCfg(
        hidden_dims=[512, 256, 128],
        activation="elu",
        obs_normalization=False,
        distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=1.0, std_type="log"),
    )
    critic = RslRlMLPModelCfg(hidden_dims=[512, 256, 128], activation="elu", obs_normalization=False)
    algorithm = RslRlPpoAlgorithmCfg(
        num_learning_epochs=5,
        num_mini_batches=4,
        learning_rate=2.0e-4,
        schedule="adaptive",
        desired_kl=0.01,
        gamma=0.99,
        lam=0.95,
        clip_param=0.2,
        entropy_coef=0.01,
        value_loss_coef=1.0,
        use_clipped_value_loss=True,
        max_grad_norm=1.0,
    )
