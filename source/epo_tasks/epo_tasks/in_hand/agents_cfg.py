"""The reference's single-policy settings. Where it shares the network between actor and critic, rsl_rl has one each.

Sizes: ``paper`` has the papers' 2e10 steps and mini-batches of four times the environments; ``gpu`` is an estimate with
the reference's mini-batches of 32,768, which nobody has run yet; ``cpu`` has longer roll-outs in the place of
environments.
"""

from isaaclab.utils import configclass

from epo_lab.configs.isaac import EpoRunnerCfg
from epo_lab.configs.sizes import size
from epo_tasks.common.agents import OBS_GROUPS, actor, critic, isaac_gym_trainer

ALLEGRO = size([512, 256, 128], cpu=[256, 128, 128])
SHADOW = size([512, 512, 256, 128], cpu=[256, 256, 128])
"""Hidden layers of the networks."""


@configclass
class AllegroPpoCfg(EpoRunnerCfg):
    """PPO, as one agent of a population, for the Allegro hand."""

    num_steps_per_env = size(8, cpu=32)
    max_iterations = size(20_000, cpu=1000, paper=101_726)
    save_interval = size(500, cpu=100, paper=1000)
    keep_checkpoints = 10
    clip_actions = 1.0
    obs_groups = OBS_GROUPS
    actor = actor(ALLEGRO, normalize=True)
    critic = critic(ALLEGRO, normalize=True)
    algorithm = isaac_gym_trainer(desired_kl=0.016, num_mini_batches=size(3, cpu=4, paper=2))


@configclass
class ShadowPpoCfg(AllegroPpoCfg):
    """The same with the Shadow hand's larger network."""

    actor = actor(SHADOW, normalize=True)
    critic = critic(SHADOW, normalize=True)
