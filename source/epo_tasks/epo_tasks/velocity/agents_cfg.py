"""PPO of the walking robots on flat ground."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer, legged_gym_trainer


@configclass
class A1FlatPpoCfg(EpoRunnerCfg):
    """The settings of Isaac Lab's own flat task: plain rsl_rl PPO."""

    experiment_name = "a1_flat"
    num_steps_per_env = 24
    max_iterations = 300
    save_interval = 50
    obs_groups = OBS_GROUPS
    actor = actor(128, 128, 128, normalize=False)
    critic = critic(128, 128, 128, normalize=False)
    algorithm = legged_gym_trainer(num_mini_batches=4, learning_rate=1.0e-3, desired_kl=0.01, entropy_coef=0.01)


@configclass
class AnymalFlatPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference task: normalised inputs and values, and a bounds loss."""

    experiment_name = "anymal_flat"
    num_steps_per_env = 24
    max_iterations = 1000
    save_interval = 50
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(256, 128, 64, normalize=True)
    critic = critic(256, 128, 64, normalize=True)
    algorithm = isaac_gym_trainer(
        num_mini_batches=3,
        learning_rate=3.0e-4,
        desired_kl=0.008,
        # the reference's loss is half the squared error times 2
        value_loss_coef=1.0,
        bounds_loss_coef=1.0e-3,
        reward_scale=1.0,
    )
