"""Plain rsl_rl PPO on A1 parkour.

Sizes: ``paper`` has EPO's settings for locomotion, whose critic loss is half the squared error times 4; it names no
length, 5e9 steps are our choice. ``gpu``, 983 million steps, is an estimate that nobody has run yet. ``cpu``, 23
million steps, normalizes observations and explores less at first: in the first 100 iterations that earns more.
"""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, legged_gym_trainer

LAYERS = size([512, 256, 128], cpu=[256, 128, 64])
"""Hidden layers of the networks."""


@configclass
class A1ParkourPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference, with a plain network."""

    experiment_name = "a1_parkour"
    num_steps_per_env = size(24, paper=16)
    max_iterations = size(10_000, cpu=3000, paper=12_716)
    save_interval = 100
    clip_actions = 4.8
    obs_groups = OBS_GROUPS
    actor = actor(LAYERS, normalize=size(False, cpu=True), init_std=size(1.0, cpu=0.6))
    critic = critic(LAYERS, normalize=size(False, cpu=True))
    algorithm = legged_gym_trainer(
        num_mini_batches=4,
        num_learning_epochs=size(5, paper=2),
        learning_rate=size(2.0e-4, paper=1.0e-4),
        desired_kl=size(0.01, paper=0.016),
        clip_param=size(0.2, paper=0.1),
        entropy_coef=size(0.01, cpu=0.005, paper=0.0),
        value_loss_coef=size(1.0, paper=2.0),
    )
