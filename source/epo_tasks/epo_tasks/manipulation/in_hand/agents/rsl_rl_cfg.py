"""The reference's single-policy settings. Where it shares the network between actor and critic, rsl_rl has one each."""

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg

from epo_lab.cfg.isaac import EpoAlgorithmCfg, EpoRunnerCfg

GAUSSIAN = RslRlMLPModelCfg.GaussianDistributionCfg(init_std=1.0, std_type="log")


@configclass
class AllegroPpoCfg(EpoRunnerCfg):
    """PPO, as one agent of a population, for the Allegro hand."""

    num_steps_per_env = 8
    max_iterations = 5000
    save_interval = 200
    clip_actions = 1.0
    obs_groups = {"actor": ["policy"], "critic": ["policy"]}
    actor = RslRlMLPModelCfg(
        hidden_dims=[512, 256, 128], activation="elu", obs_normalization=True, distribution_cfg=GAUSSIAN
    )
    critic = RslRlMLPModelCfg(hidden_dims=[512, 256, 128], activation="elu", obs_normalization=True)
    algorithm = EpoAlgorithmCfg(
        num_agents=1,
        num_learning_epochs=5,
        num_mini_batches=4,
        learning_rate=5.0e-4,
        schedule="adaptive",
        kl_schedule="epoch",
        desired_kl=0.016,
        lr_min=1.0e-6,
        gamma=0.99,
        lam=0.95,
        clip_param=0.2,
        entropy_coef=0.0,
        # the reference's loss is half the squared error times 4
        value_loss_coef=2.0,
        use_clipped_value_loss=True,
        max_grad_norm=1.0,
        bounds_loss_coef=1.0e-4,
        normalize_value=True,
        reward_scale=0.01,
    )


@configclass
class ShadowPpoCfg(AllegroPpoCfg):
    """The same with the Shadow hand's larger network."""

    actor = RslRlMLPModelCfg(
        hidden_dims=[512, 512, 256, 128], activation="elu", obs_normalization=True, distribution_cfg=GAUSSIAN
    )
    critic = RslRlMLPModelCfg(hidden_dims=[512, 512, 256, 128], activation="elu", obs_normalization=True)
