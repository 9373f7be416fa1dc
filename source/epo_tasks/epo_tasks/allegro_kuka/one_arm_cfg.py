"""One arm: put the object at points, throw it into a bucket, or turn it to poses."""

from __future__ import annotations

from isaaclab.assets import RigidObjectCfg
from isaaclab.managers import EventTermCfg, TerminationTermCfg
from isaaclab.utils import configclass

from epo_tasks.common.actions_cfg import JointTargetToLimitsCfg
from epo_tasks.common.env_cfg import VideoViewCfg
from epo_tasks.robots.kuka_allegro import ARM_JOINTS, HAND_JOINTS

from .env_cfg import (
    CommandsCfg,
    KukaEnvCfg,
    RewardsCfg,
    TerminationsCfg,
    reset_arm,
    reward,
    speed_limit,
)
from .mdp import events, rewards, terminations
from .mdp.actions_cfg import JointTargetSpeedActionCfg, RandomForceCfg
from .mdp.goal_cfg import GoalCommandCfg, PlaceCfg
from .scene_cfg import OneArmSceneCfg, bucket

OBJECT_START = PlaceCfg(x=(-0.1, 0.1), y=(-0.1, 0.1), z=(0.61, 0.65))
GOALS = PlaceCfg(x=(-0.4, 0.4), y=(0.0, 0.35), z=(0.68, 1.05))


@configclass
class ActionsCfg:
    """Arm targets move, hand targets are set; the object is pushed at random."""

    arm = JointTargetSpeedActionCfg(asset_name="robot", joint_names=list(ARM_JOINTS), speed=10.0)
    hand = JointTargetToLimitsCfg(
        asset_name="robot", joint_names=list(HAND_JOINTS), rescale_to_limits=True, preserve_order=True
    )
    push: RandomForceCfg | None = RandomForceCfg(asset_name="object")
    speed = speed_limit()


@configclass
class EventsCfg:
    """How an episode begins."""

    reset_robot = reset_arm("robot")
    reset_object = EventTermCfg(func=events.reset_object, mode="reset")


@configclass
class OneArmRewardsCfg(RewardsCfg):
    """Moving costs something."""

    arm_speed = reward(rewards.joint_speed, -0.003, asset_name="robot", first=0, last=7)
    hand_speed = reward(rewards.joint_speed, -0.0003, asset_name="robot", first=7, last=23)


@configclass
class RegraspEnvCfg(KukaEnvCfg):
    """``Epo-Kuka-OneArm-Regrasp-v0``: lift the object and hold it at a point, again and again."""

    scene: OneArmSceneCfg = OneArmSceneCfg()
    actions: ActionsCfg = ActionsCfg()
    events: EventsCfg = EventsCfg()
    rewards: OneArmRewardsCfg = OneArmRewardsCfg()
    commands: CommandsCfg = CommandsCfg(
        goal=GoalCommandCfg(object_start=OBJECT_START, place=GOALS, near_steps=30, goal_length=400)
    )
    video_views = {
        "front": VideoViewCfg(eye=(0.95, -1.25, 1.25), target=(0.0, 0.15, 0.62)),
        "side": VideoViewCfg(eye=(-1.45, -0.35, 0.95), target=(0.0, 0.2, 0.6)),
    }


@configclass
class ThrowSceneCfg(OneArmSceneCfg):
    """With a bucket."""

    bucket: RigidObjectCfg = bucket()


@configclass
class ThrowEnvCfg(RegraspEnvCfg):
    """``Epo-Kuka-OneArm-Throw-v0``: throw small objects into a bucket out of reach."""

    object_families = ("small",)
    scene: ThrowSceneCfg = ThrowSceneCfg()
    commands: CommandsCfg = CommandsCfg(
        goal=GoalCommandCfg(
            object_start=OBJECT_START,
            place=PlaceCfg(x=(0.5, 0.9), y=(-1.0, 0.7), z=(0.0, 1.0), either_side=True),
            bucket_name="bucket",
            near_steps=5,
            goal_length=300,
            tolerance=(0.075, 0.075),
        )
    )
    video_views = {
        "front": VideoViewCfg(eye=(1.7, -2.2, 1.8), target=(0.0, 0.1, 0.5)),
        "top": VideoViewCfg(eye=(0.0, -0.6, 3.6), target=(0.0, 0.0, 0.4)),
    }

    def __post_init__(self):
        super().__post_init__()
        self.actions.push = None


@configclass
class ReorientTerminationsCfg(TerminationsCfg):
    """The hand must stay near the object."""

    hand_too_far = TerminationTermCfg(func=terminations.hand_too_far, params={"distance": 1.5})


@configclass
class ReorientEnvCfg(RegraspEnvCfg):
    """``Epo-Kuka-OneArm-Reorient-v0``: bring the object to poses in the air, one after the other."""

    terminations: ReorientTerminationsCfg = ReorientTerminationsCfg()
    commands: CommandsCfg = CommandsCfg(
        goal=GoalCommandCfg(
            object_start=OBJECT_START, place=GOALS, pose=True, replace_object=False, near_steps=1, goal_length=600
        )
    )
