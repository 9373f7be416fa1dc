"""``Epo-ShadowHand-Reorient-v0``: twenty motors turn a cube in the palm, at 60 Hz for 10 s."""

from __future__ import annotations

from isaaclab.assets import ArticulationCfg, RigidObjectCfg
from isaaclab.envs import mdp
from isaaclab.managers import SceneEntityCfg
from isaaclab.sensors import JointWrenchSensorCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import NewtonCfg

from epo_lab.base.errors import UserError
from epo_tasks.robots.shadow_hand import FACTS, MOTORS, SHADOW_HAND_CFG, TENDON_STIFFNESS

from .env_cfg import (
    ActionsCfg,
    CommandsCfg,
    InHandEnvCfg,
    InHandSceneCfg,
    RewardsCfg,
    cube,
    motors,
    observation,
    rewards_of,
    views,
)
from .mdp import observations
from .mdp.goal_cfg import OrientationGoalCfg

EDGE = 0.05


@configclass
class SceneCfg(InHandSceneCfg):
    """The Shadow hand with a cube of 71 g."""

    robot: ArticulationCfg = SHADOW_HAND_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    object: RigidObjectCfg = cube(EDGE, density=567.0, start=(0.0, -0.39, 0.60))
    joint_wrench: JointWrenchSensorCfg | None = None


@configclass
class ShadowReorientEnvCfg(InHandEnvCfg):
    """The Shadow hand turns a cube."""

    decimation = 2
    episode_length_s = 10.0
    fingertip_names = FACTS.extras["end_links"]
    fingertips = True
    video_views = views(-0.39, 0.56)
    scene: SceneCfg = SceneCfg()
    actions: ActionsCfg = motors(list(MOTORS))
    commands: CommandsCfg = CommandsCfg(goal=OrientationGoalCfg(edge=EDGE))
    rewards: RewardsCfg = rewards_of(step_dt=2.0 / 120.0)

    full_state: bool = False
    """Whether the policy also sees joint torques and the forces in the fingertips: 211 numbers. Default False: 157."""

    tendon_stiffness: str = "stiff"
    """What the reference's stiffness of tendons (30) means: ``stiff`` (default), 30 N m/rad at the distal joints, which
    couples them, or ``reference``, 30 N/m on the tendon's length, which does not. On Newton limits are hard in both."""

    def complete(self) -> None:
        """Put the chosen tendons in place, what the policy shall see, and the randomisation of tendons on PhysX.

        On Newton the limits of tendons are hard: there is no stiffness to be drawn.
        """
        if self.tendon_stiffness not in TENDON_STIFFNESS:
            known = ", ".join(TENDON_STIFFNESS)
            raise UserError(f"env.tendon_stiffness '{self.tendon_stiffness}' is none of {known}")
        self.scene.robot.spawn.facts = TENDON_STIFFNESS[self.tendon_stiffness]
        if self.full_state:
            self.scene.joint_wrench = JointWrenchSensorCfg(prim_path="{ENV_REGEX_NS}/Robot")
            behind_joints = [joint.child for joint in FACTS.moving_joints]
            policy = self.observations.policy
            policy.joint_torques = observation(observations.joint_torques, 10.0, sensor_cfg=_links(behind_joints))
            policy.fingertip_wrenches = observation(
                mdp.body_incoming_wrench, 10.0, sensor_cfg=_links(self.fingertip_names)
            )
        super().complete()
        if self.randomize and not isinstance(self.sim.physics, NewtonCfg):
            self.events.random_tendons = self.randomization.with_episodes(
                mdp.randomize_fixed_tendon_parameters,
                asset_cfg=SceneEntityCfg("robot", fixed_tendon_names=".*"),
                limit_stiffness_distribution_params=self.randomization.stiffness,
                damping_distribution_params=self.randomization.damping,
                operation="scale",
                distribution=self.randomization.gain_distribution,
            )


def _links(names: list[str]) -> SceneEntityCfg:
    return SceneEntityCfg("joint_wrench", body_names=names, preserve_order=True)
