"""The reference's single-policy settings. Where it shares the network between actor and critic, rsl_rl has one each."""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer


@configclass
class AllegroPpoCfg(EpoRunnerCfg):
    """PPO, as one agent of a population, for the Allegro hand."""

    num_steps_per_env = 8
    max_iterations = 5000
    save_interval = 200
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(512, 256, 128, normalize=True)
    critic = critic(512, 256, 128, normalize=True)
    algorithm = isaac_gym_trainer(desired_kl=0.016)


@configclass
class ShadowPpoCfg(AllegroPpoCfg):
    """The same with the Shadow hand's larger network."""

    actor = actor(512, 512, 256, 128, normalize=True)
    critic = critic(512, 512, 256, 128, normalize=True)
