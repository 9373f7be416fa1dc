"""PPO on the humanoid."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer

LAYERS = size([400, 200, 100], cpu=[256, 128, 64], paper=[768, 512, 256])
"""Hidden layers of the networks."""


@configclass
class HumanoidRunPpoCfg(EpoRunnerCfg):
    """The single-policy settings of the reference task. Its learning rewards are scaled, so PPO is ours with K = 1.

    Sizes: ``paper`` is that of the population papers, 5e9 steps and mini-batches of four times the environments;
    ``gpu`` is an estimate with the reference's mini-batches of 32,768, which nobody has run yet; ``cpu`` has
    12 million steps.
    """

    experiment_name = "humanoid_run"
    num_steps_per_env = size(32, paper=8)
    max_iterations = size(2000, cpu=1000, paper=25_431)
    save_interval = size(100, paper=500)
    keep_checkpoints = 10
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(LAYERS, normalize=True)
    critic = critic(LAYERS, normalize=True)
    algorithm = isaac_gym_trainer(
        desired_kl=0.008,
        num_mini_batches=size(6, cpu=4, paper=2),
        entropy_coef=size(0.0, paper=0.002),
    )


@configclass
class HumanoidControlSuitePpoCfg(HumanoidRunPpoCfg):
    """The same for the Control Suite's rewards, which are 0 to 1 in every step and need no scale."""

    algorithm = isaac_gym_trainer(
        desired_kl=0.008,
        num_mini_batches=size(6, cpu=4, paper=2),
        entropy_coef=size(0.0, paper=0.002),
        reward_scale=1.0,
    )
