"""Two arms: bring the object to points or poses on either side, past obstacles too."""

from __future__ import annotations

from isaaclab.assets import AssetBaseCfg, RigidObjectCfg
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
from isaaclab.utils import configclass

from epo_tasks.common.actions_cfg import JointTargetToLimitsCfg
from epo_tasks.common.env_cfg import VideoViewCfg
from epo_tasks.robots.kuka_allegro import FACTS

from .env_cfg import (
    CommandsCfg,
    KukaEnvCfg,
    RewardsCfg,
    observation,
    reset_arm,
    reward,
    speed_limit,
)
from .mdp import events, observations, rewards
from .mdp.actions_cfg import RandomForceCfg
from .mdp.goal_cfg import GoalCommandCfg, PlaceCfg
from .scene_cfg import TwoArmSceneCfg, partition, wall

ARMS = ("robot_0", "robot_1")
OBJECT_START = PlaceCfg(x=(0.25, 0.45), y=(-0.1, 0.1), z=(0.61, 0.65), either_side=True)
GOALS = PlaceCfg(x=(0.55, 0.95), y=(-0.5, 0.5), z=(0.68, 1.05), either_side=True)


def joint_targets(name: str) -> JointTargetToLimitsCfg:
    """Return the action that sets the targets of all joints of an arm, from limit to limit."""
    return JointTargetToLimitsCfg(
        asset_name=name, joint_names=list(FACTS.joint_names), rescale_to_limits=True, preserve_order=True
    )


@configclass
class ActionsCfg:
    """All targets are absolute; the object is pushed at random."""

    arm_0 = joint_targets("robot_0")
    arm_1 = joint_targets("robot_1")
    push = RandomForceCfg(asset_name="object")
    speed = speed_limit()


@configclass
class EventsCfg:
    """How an episode begins."""

    reset_robot_0 = reset_arm("robot_0")
    reset_robot_1 = reset_arm("robot_1")
    reset_object = EventTermCfg(func=events.reset_object, mode="reset")


@configclass
class TwoArmRewardsCfg(RewardsCfg):
    """Both hands stay near the object, also when it is lifted; moving is free."""

    reaching = reward(rewards.reaching, 50.0, until_lifted=False)


@configclass
class RegraspEnvCfg(KukaEnvCfg):
    """``Epo-Kuka-TwoArm-Regrasp-v0``: hold the object at points on either side."""

    scene: TwoArmSceneCfg = TwoArmSceneCfg()
    actions: ActionsCfg = ActionsCfg()
    events: EventsCfg = EventsCfg()
    rewards: TwoArmRewardsCfg = TwoArmRewardsCfg()
    commands: CommandsCfg = CommandsCfg(
        goal=GoalCommandCfg(arm_names=ARMS, object_start=OBJECT_START, place=GOALS, near_steps=30, goal_length=400)
    )
    video_views = {
        "front": VideoViewCfg(eye=(0.0, -2.9, 1.7), target=(0.0, 0.0, 0.62)),
        "side": VideoViewCfg(eye=(1.9, -2.3, 2.0), target=(0.0, 0.0, 0.6)),
    }

    def __post_init__(self):
        super().__post_init__()
        # the reference leaves the fingertips' records out with two arms
        self.observations.policy.best_tip_distances = None


@configclass
class ReorientEnvCfg(RegraspEnvCfg):
    """``Epo-Kuka-TwoArm-Reorient-v0``: bring the object to poses on either side."""

    commands: CommandsCfg = CommandsCfg(
        goal=GoalCommandCfg(
            arm_names=ARMS,
            object_start=OBJECT_START,
            place=GOALS,
            pose=True,
            replace_object=False,
            near_steps=1,
            goal_length=600,
        )
    )


@configclass
class HoleSceneCfg(TwoArmSceneCfg):
    """A wall with a slot 20 cm high."""

    lower_wall: AssetBaseCfg = wall("LowerWall", 0.5, 0.8)
    upper_wall: AssetBaseCfg = wall("UpperWall", 1.0, 2.0)


@configclass
class HoleEnvCfg(ReorientEnvCfg):
    """``Epo-Kuka-TwoArm-Reorient-Hole-v0``."""

    scene: HoleSceneCfg = HoleSceneCfg()


@configclass
class BarrierSceneCfg(TwoArmSceneCfg):
    """A wall as wide as the table, too high to throw over."""

    barrier: AssetBaseCfg = wall("Barrier", 0.5, 2.0)


@configclass
class BarrierEnvCfg(ReorientEnvCfg):
    """``Epo-Kuka-TwoArm-Reorient-Barrier-v0``."""

    scene: BarrierSceneCfg = BarrierSceneCfg()


@configclass
class PartitionSceneCfg(TwoArmSceneCfg):
    """A wall that can be pushed away."""

    obstacle: RigidObjectCfg = partition()


@configclass
class PartitionEventsCfg(EventsCfg):
    """The wall stands upright again."""

    reset_obstacle = EventTermCfg(
        func=mdp.reset_root_state_uniform,
        mode="reset",
        params={"pose_range": {}, "velocity_range": {}, "asset_cfg": SceneEntityCfg("obstacle")},
    )


@configclass
class PartitionEnvCfg(ReorientEnvCfg):
    """``Epo-Kuka-TwoArm-Reorient-Partition-v0``."""

    observe_obstacle: bool = False
    """Whether position and orientation of the wall are appended to the observation. Default False."""

    scene: PartitionSceneCfg = PartitionSceneCfg()
    events: PartitionEventsCfg = PartitionEventsCfg()

    def complete(self) -> None:
        """Fill in the objects, and the observation of the wall if asked for."""
        super().complete()
        if self.observe_obstacle:
            self.observations.policy.obstacle_pose = observation(observations.obstacle_pose)
