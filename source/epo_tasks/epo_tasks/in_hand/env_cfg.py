"""What the in-hand tasks share."""

from __future__ import annotations

from dataclasses import MISSING

import isaaclab.sim as sim_utils
from isaaclab.assets import ArticulationCfg, AssetBaseCfg, RigidObjectCfg
from isaaclab.cloner import CloneCfg
from isaaclab.envs import mdp
from isaaclab.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import MultiAssetSpawnerCfg, RigidBodyMaterialCfg, SimulationCfg
from isaaclab.utils import configclass
from isaaclab_tasks.utils import preset

from epo_lab.configs.sizes import size
from epo_tasks.common.actions_cfg import JointTargetToLimitsCfg, SpinLimitCfg
from epo_tasks.common.assignment import round_robin
from epo_tasks.common.env_cfg import RandomizableEnvCfg, VideoViewCfg
from epo_tasks.common.ground_cfg import GroundCfg
from epo_tasks.common.physics import HAND_NEWTON, MANY_CONTACTS, physics_presets
from epo_tasks.common.primitives_cfg import PrimitivesCfg, box, free_box
from epo_tasks.common.randomization_cfg import RandomizationCfg
from epo_tasks.common.reward_terms import reward_per_step

from .mdp import events, observations, rewards, terminations
from .mdp.goal_cfg import OrientationGoalCfg

PLAY_ENVS = 16
CUBE = (0.85, 0.30, 0.25)
CUBE_SIZES = [0.95 + 0.1 * index / 15 for index in range(16)]
"""Factors of the cube's edge, one environment after the other, if the task is randomised."""


def cube(edge: float, density: float, start: tuple[float, float, float]) -> RigidObjectCfg:
    """Return the cube: edge [m], density [kg/m^3] and the place where it is let go [m]."""
    return RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/Object",
        spawn=free_box((edge, edge, edge), density, CUBE),
        init_state=RigidObjectCfg.InitialStateCfg(pos=start),
    )


@configclass
class InHandSceneCfg(InteractiveSceneCfg):
    """A hand and a cube."""

    num_envs = size(12288, cpu=192, paper=24576)
    env_spacing = 0.75
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(checker_size=0.25), collision_group=-1)
    light = AssetBaseCfg(prim_path="/World/light", spawn=sim_utils.DomeLightCfg(intensity=2000.0))
    robot: ArticulationCfg = MISSING
    object: RigidObjectCfg = MISSING


@configclass
class ActionsCfg:
    """Absolute targets of the motors, from limit to limit."""

    hand: JointTargetToLimitsCfg = MISSING
    # Newton knows neither damping of bodies nor a fastest spin
    spin: SpinLimitCfg | None = preset(default=None, newton_mjwarp=SpinLimitCfg(asset_name="object"))


def motors(names: list[str]) -> ActionsCfg:
    """Return the actions of a hand with these motors."""
    return ActionsCfg(
        hand=JointTargetToLimitsCfg(asset_name="robot", joint_names=names, rescale_to_limits=True, preserve_order=True)
    )


@configclass
class CommandsCfg:
    """The goal."""

    goal: OrientationGoalCfg = MISSING


def observation(func, scale: float = 1.0, **params) -> ObservationTermCfg:
    """Return a block of the observation, clipped to +-5; Isaac Lab clips before it scales."""
    return ObservationTermCfg(func=func, scale=scale, clip=(-5.0 / scale, 5.0 / scale), params=params)


@configclass
class ObservationsCfg:
    """Everything there is to know, without noise; actor and critic see the same."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """The order is that of Isaac Lab's task."""

        joint_pos = observation(mdp.joint_pos_limit_normalized)
        joint_vel = observation(mdp.joint_vel, 0.2)
        fingertip_poses: ObservationTermCfg | None = None
        fingertip_velocities: ObservationTermCfg | None = None
        cube_pose = observation(observations.cube_pose)
        cube_lin_vel = observation(observations.cube_lin_vel)
        cube_ang_vel = observation(observations.cube_ang_vel, 0.2)
        goal_pose = observation(observations.goal_pose)
        goal_difference = observation(observations.goal_difference)
        joint_torques: ObservationTermCfg | None = None
        fingertip_wrenches: ObservationTermCfg | None = None
        actions = ObservationTermCfg(func=mdp.last_action, clip=(-1.0, 1.0))

    policy: PolicyCfg = PolicyCfg()


@configclass
class EventsCfg:
    """How an episode begins."""

    reset_hand = EventTermCfg(func=events.reset_hand, mode="reset", params={"noise": 0.2})
    reset_cube = EventTermCfg(func=events.reset_cube, mode="reset", params={"noise": 0.01})


@configclass
class RewardsCfg:
    """A fall and the end of time cost nothing."""

    distance: RewardTermCfg = MISSING
    orientation: RewardTermCfg = MISSING
    action: RewardTermCfg = MISSING
    success: RewardTermCfg = MISSING


def rewards_of(step_dt: float) -> RewardsCfg:
    """Return the rewards, in their amounts per step of ``step_dt`` [s]."""
    return RewardsCfg(
        distance=reward_per_step(rewards.distance, -10.0, step_dt),
        orientation=reward_per_step(rewards.orientation, 1.0, step_dt, softening=0.1),
        action=reward_per_step(mdp.action_l2, -0.0002, step_dt),
        success=reward_per_step(rewards.success, 250.0, step_dt),
    )


@configclass
class TerminationsCfg:
    """A cube that fell off, and the end of time."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)
    cube_away = TerminationTermCfg(func=terminations.cube_away, params={"distance": 0.24})


@configclass
class InHandEnvCfg(RandomizableEnvCfg):
    """Base of the two tasks: 600 steps, and a goal after the other."""

    episode_sums = {"successes": rewards.success}

    fingertip_names: list[str] = MISSING
    """Links of the hand that are its fingertips."""

    randomization: RandomizationCfg = RandomizationCfg(
        objects=("object",),
        stiffness=(0.75, 1.5),
        damping=(0.3, 3.0),
        gain_distribution="log_uniform",
        observation_noise=(0.002, 0.001),
        action_noise=(0.05, 0.015),
    )
    """By how much, if so."""

    fingertips: bool = False
    """Whether the policy sees poses and velocities of the fingertips. Default False."""

    sim: SimulationCfg = SimulationCfg(
        dt=1.0 / 120.0,
        physics=physics_presets(HAND_NEWTON, bounce_threshold=0.2, **MANY_CONTACTS),
        physics_material=RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0, restitution=0.0),
    )
    scene: InHandSceneCfg = InHandSceneCfg()
    actions: ActionsCfg = ActionsCfg()
    commands: CommandsCfg = CommandsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def complete(self) -> None:
        """Add what the policy shall see beyond the least, and the randomisation."""
        if self.fingertips:
            tips = SceneEntityCfg("robot", body_names=self.fingertip_names, preserve_order=True)
            policy = self.observations.policy
            policy.fingertip_poses = observation(observations.fingertip_poses, asset_cfg=tips)
            policy.fingertip_velocities = observation(observations.fingertip_velocities, asset_cfg=tips)

        super().complete()
        if self.randomize:
            self.scene.object.spawn = MultiAssetSpawnerCfg(assets_cfg=_sizes_of(self.scene.object.spawn))
            self.scene.clone_cfg = CloneCfg(clone_strategy=round_robin)

    def play_mode(self) -> None:
        """Few environments, and goals to be seen."""
        self.scene.num_envs = min(self.scene.num_envs, PLAY_ENVS)
        self.commands.goal.debug_vis = True


def _sizes_of(cube: PrimitivesCfg) -> list[PrimitivesCfg]:
    """Return cubes from 95 to 105 percent of the edge of this one, of the same mass."""
    edge = cube.shapes[0].size["x"]
    return [cube.replace(shapes=[box((factor * edge,) * 3)]) for factor in CUBE_SIZES]


def views(y: float, z: float) -> dict[str, VideoViewCfg]:
    """Return the views of a cube at this place: from the side and from above."""
    return {
        "side": VideoViewCfg(eye=(0.30, y - 0.26, z + 0.22), target=(0.0, y, z + 0.03)),
        "top": VideoViewCfg(eye=(0.02, y - 0.16, z + 0.42), target=(0.0, y, z)),
    }
