"""Plain rsl_rl PPO on A1 parkour."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, legged_gym_trainer


@configclass
class A1ParkourPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference, with a plain network."""

    experiment_name = "a1_parkour"
    num_steps_per_env = 24
    max_iterations = 10_000
    save_interval = 100
    clip_actions = 4.8
    obs_groups = OBS_GROUPS
    actor = actor(512, 256, 128, normalize=False)
    critic = critic(512, 256, 128, normalize=False)
    algorithm = legged_gym_trainer(num_mini_batches=4, learning_rate=2.0e-4, desired_kl=0.01, entropy_coef=0.01)
