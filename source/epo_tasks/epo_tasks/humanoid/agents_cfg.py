"""PPO on the humanoid."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer


@configclass
class HumanoidRunPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference task. Its learning rewards are scaled, so PPO is ours with K = 1."""

    experiment_name = "humanoid_run"
    num_steps_per_env = 32
    max_iterations = 1000
    save_interval = 50
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(400, 200, 100, normalize=True)
    critic = critic(400, 200, 100, normalize=True)
    algorithm = isaac_gym_trainer(desired_kl=0.008)
