"""``Epo-Humanoid-Stand-v0`` and ``Epo-Humanoid-Walk-v0``: the Control Suite's own tasks.

Body, observation, reward and start states are the suite's. An episode is 25 s, whatever happens; 1,000 is perfect.
"""

from __future__ import annotations

from isaaclab.managers import EventTermCfg, TerminationTermCfg
from isaaclab.sim import RigidBodyMaterialCfg, SimulationCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.locomotion import mdp

from epo_tasks.common.env_cfg import VideoViewCfg
from epo_tasks.common.physics import LEGGED_NEWTON, physics_presets
from epo_tasks.common.reward_terms import reward_per_step

from .env_cfg import HumanoidEnvCfg
from .mdp import rewards
from .mdp.events import ResetAnyhow

STEP_DT = 0.025


@configclass
class AnyhowEventsCfg:
    """In the air, turned and bent at random."""

    reset = EventTermCfg(func=ResetAnyhow, mode="reset", params={"pool_size": 4096, "height": 1.5, "seed": 0})


@configclass
class StandRewardsCfg:
    """Stand, upright, with little torque, and stay in place."""

    stand = reward_per_step(rewards.dmc_reward, 1.0, STEP_DT, speed=0.0)


@configclass
class WalkRewardsCfg:
    """Stand, upright, with little torque, and move."""

    walk = reward_per_step(rewards.dmc_reward, 1.0, STEP_DT, speed=rewards.WALK_SPEED)


@configclass
class NoFallCfg:
    """A fall ends nothing."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)


@configclass
class HumanoidStandEnvCfg(HumanoidEnvCfg):
    """The humanoid gets up and stands."""

    decimation = 5
    # a hair below 1,000 steps, because the number of steps is rounded up
    episode_length_s = 24.99
    body = "dmc"
    observation = "dmc"
    video_views = {"front": VideoViewCfg(follow="robot", eye=(2.0, -2.2, 1.5), target=(0.0, 0.0, 0.5))}
    # from its fall out of the air
    settle_steps = 60

    sim: SimulationCfg = SimulationCfg(
        dt=STEP_DT / 5.0,
        physics=physics_presets(LEGGED_NEWTON, bounce_threshold=0.2),
        physics_material=RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0, restitution=0.0),
    )
    events: AnyhowEventsCfg = AnyhowEventsCfg()
    rewards: StandRewardsCfg = StandRewardsCfg()
    terminations: NoFallCfg = NoFallCfg()


@configclass
class HumanoidWalkEnvCfg(HumanoidStandEnvCfg):
    """The humanoid gets up and walks at 1 m/s or faster."""

    rewards: WalkRewardsCfg = WalkRewardsCfg()
