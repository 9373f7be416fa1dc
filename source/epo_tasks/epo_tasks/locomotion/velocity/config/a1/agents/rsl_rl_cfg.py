"""Plain rsl_rl PPO on A1 flat."""

from isaaclab.utils import configclass

from epo_lab.cfg.isaac import EpoRunnerCfg
from epo_tasks.agents import OBS_GROUPS, actor, critic, legged_gym_trainer


@configclass
class A1FlatPpoCfg(EpoRunnerCfg):
    """The settings of Isaac Lab's own flat task."""

    experiment_name = "a1_flat"
    num_steps_per_env = 24
    max_iterations = 300
    save_interval = 50
    obs_groups = OBS_GROUPS
    actor = actor(128, 128, 128, normalize=False)
    critic = critic(128, 128, 128, normalize=False)
    algorithm = legged_gym_trainer(num_mini_batches=4, learning_rate=1.0e-3, desired_kl=0.01, entropy_coef=0.01)
