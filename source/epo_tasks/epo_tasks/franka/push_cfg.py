"""``Epo-Franka-CubePush-v0``: move a cube so that it lies over a point of the table within 5 mm."""

from __future__ import annotations

from isaaclab.managers import TerminationTermCfg
from isaaclab.utils import configclass

from .env_cfg import EDGE, TABLE_TOP, CommandsCfg, FrankaEnvCfg, TerminationsCfg, reward
from .mdp import rewards, terminations
from .mdp.goal_cfg import PushGoalCfg


@configclass
class PushRewardsCfg:
    """One of the three in every step. Nothing is paid for bringing the hand to the cube."""

    progress = reward(rewards.push_progress, 2.0)
    failure = reward(rewards.push_failure, -5.0)
    success = reward(rewards.steps_left_at_success, 4.0)


@configclass
class PushTerminationsCfg(TerminationsCfg):
    """To lift the cube is a failure."""

    lifted = TerminationTermCfg(func=terminations.lifted)


@configclass
class CubePushEnvCfg(FrankaEnvCfg):
    """A cube is pushed to a goal. Success in the first step would return 1,196."""

    commands: CommandsCfg = CommandsCfg(
        goal=PushGoalCfg(table_top=TABLE_TOP, edge=EDGE, goal_edge=EDGE, goal_height=TABLE_TOP + EDGE / 2.0)
    )
    rewards: PushRewardsCfg = PushRewardsCfg()
    terminations: PushTerminationsCfg = PushTerminationsCfg()
