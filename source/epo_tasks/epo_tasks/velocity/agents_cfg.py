"""PPO of the walking robots on flat ground."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer, legged_gym_trainer

A1_LAYERS = size([128, 128, 128], paper=[512, 256, 128])
ANYMAL_LAYERS = size([256, 128, 64], cpu=[128, 128, 128], paper=[768, 512, 256])
"""Hidden layers of the networks."""


@configclass
class A1FlatPpoCfg(EpoRunnerCfg):
    """The settings of Isaac Lab's own flat task: plain rsl_rl PPO.

    Sizes: ``paper`` has EPO's settings for locomotion, whose critic loss is half the squared error times 4; it has no
    score for this task, 2e9 steps are our choice. ``gpu`` is 98 million steps; Isaac Lab trains for 300 iterations.
    ``cpu``, 18 million steps, normalizes observations, because joint velocities come unscaled and noisy.
    """

    experiment_name = "a1_flat"
    num_steps_per_env = size(24, paper=16)
    max_iterations = size(1000, cpu=1500, paper=5086)
    save_interval = size(50, cpu=100)
    obs_groups = OBS_GROUPS
    actor = actor(A1_LAYERS, normalize=size(False, cpu=True))
    critic = critic(A1_LAYERS, normalize=size(False, cpu=True))
    algorithm = legged_gym_trainer(
        num_mini_batches=4,
        num_learning_epochs=size(5, paper=2),
        learning_rate=size(1.0e-3, paper=1.0e-4),
        desired_kl=size(0.01, paper=0.016),
        clip_param=size(0.2, paper=0.1),
        entropy_coef=size(0.01, cpu=0.005, paper=0.0),
        value_loss_coef=size(1.0, paper=2.0),
    )


@configclass
class AnymalFlatPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference task: normalised inputs and values, and a bounds loss.

    Sizes: ``paper`` is that of the population papers, 5e9 steps; ``gpu`` the reference's 98 million steps; ``cpu``
    has 29 million steps and a larger learning rate.
    """

    experiment_name = "anymal_flat"
    num_steps_per_env = size(24, paper=8)
    max_iterations = size(1000, cpu=2400, paper=25_431)
    save_interval = size(50, cpu=100)
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(ANYMAL_LAYERS, normalize=True)
    critic = critic(ANYMAL_LAYERS, normalize=True)
    algorithm = isaac_gym_trainer(
        num_mini_batches=size(3, cpu=4, paper=2),
        learning_rate=size(3.0e-4, cpu=1.0e-3),
        desired_kl=size(0.008, cpu=0.01),
        # the reference's loss is half the squared error times 2
        value_loss_coef=1.0,
        bounds_loss_coef=1.0e-3,
        reward_scale=1.0,
    )
