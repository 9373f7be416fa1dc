"""``Epo-AllegroHand-Reorient-v0``: sixteen joints turn a cube in the palm, at 30 Hz for 20 s."""

from __future__ import annotations

from isaaclab.assets import ArticulationCfg, RigidObjectCfg
from isaaclab.utils import configclass

from epo_tasks.robots.allegro_hand import ALLEGRO_HAND_CFG, FACTS

from .env_cfg import (
    ActionsCfg,
    CommandsCfg,
    InHandEnvCfg,
    InHandSceneCfg,
    RewardsCfg,
    cube,
    motors,
    rewards_of,
    views,
)
from .mdp.goal_cfg import OrientationGoalCfg

EDGE = 0.065


@configclass
class SceneCfg(InHandSceneCfg):
    """The Allegro hand with a cube of 110 g."""

    robot: ArticulationCfg = ALLEGRO_HAND_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    object: RigidObjectCfg = cube(EDGE, density=400.0, start=(0.0, -0.2, 0.56))


@configclass
class AllegroReorientEnvCfg(InHandEnvCfg):
    """The Allegro hand turns a cube."""

    decimation = 4
    episode_length_s = 20.0
    fingertip_names = FACTS.extras["end_links"]
    video_views = views(-0.2, 0.53)
    scene: SceneCfg = SceneCfg()
    actions: ActionsCfg = motors(list(FACTS.joint_names))
    commands: CommandsCfg = CommandsCfg(goal=OrientationGoalCfg(edge=EDGE))
    rewards: RewardsCfg = rewards_of(step_dt=4.0 / 120.0)
