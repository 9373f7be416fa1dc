"""``Epo-Anymal-Flat-v0``: follow a constant velocity command for 50 s. The return is at most 75."""

from __future__ import annotations

from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import mdp
from isaaclab.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from isaaclab.sensors import ContactSensorCfg
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass

from epo_tasks.common.env_cfg import RandomizableEnvCfg, VideoViewCfg
from epo_tasks.common.ground_cfg import FIRM_SURFACE, GroundCfg
from epo_tasks.common.legged import LeggedEnvCfg, LeggedSceneCfg, joint_targets, tracking
from epo_tasks.common.physics import LEGGED_NEWTON_10MS, physics_presets
from epo_tasks.robots.anymal_c import ANYMAL_C_CFG, FACTS

from . import mdp as velocity_mdp

ACTION_SCALE = 0.5
"""Radians from the default pose for an action of 1."""


@configclass
class SceneCfg(LeggedSceneCfg):
    """ANYmal on a plane."""

    env_spacing = 4.0
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(physics_material=FIRM_SURFACE), collision_group=-1)
    robot: ArticulationCfg = ANYMAL_C_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    contact_forces = ContactSensorCfg(prim_path="{ENV_REGEX_NS}/Robot/(base|.*_THIGH)")


@configclass
class CommandsCfg:
    """The velocity to follow, drawn at reset and held for the whole episode."""

    base_velocity = mdp.UniformVelocityCommandCfg(
        asset_name="robot",
        heading_command=False,
        resampling_time_range=(1.0e6, 1.0e6),
        rel_standing_envs=0.0,
        ranges=mdp.UniformVelocityCommandCfg.Ranges(
            lin_vel_x=(-2.0, 2.0), lin_vel_y=(-1.0, 1.0), ang_vel_z=(-1.0, 1.0)
        ),
    )


@configclass
class ActionsCfg:
    """Joint targets around the default pose; actions beyond +-1 have no more effect."""

    joint_pos = joint_targets(FACTS, ACTION_SCALE, limit=1.0)


@configclass
class ObservationsCfg:
    """48 numbers without noise. Isaac Lab clips before it scales, so each clip is 5 / scale."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """Actor and critic see the same."""

        base_lin_vel = ObservationTermCfg(func=mdp.base_lin_vel, scale=2.0, clip=(-2.5, 2.5))
        base_ang_vel = ObservationTermCfg(func=mdp.base_ang_vel, scale=0.25, clip=(-20.0, 20.0))
        projected_gravity = ObservationTermCfg(func=mdp.projected_gravity)
        velocity_commands = ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "base_velocity"}, scale=(2.0, 2.0, 0.25)
        )
        joint_pos = ObservationTermCfg(func=mdp.joint_pos_rel, clip=(-5.0, 5.0))
        joint_vel = ObservationTermCfg(func=mdp.joint_vel_rel, scale=0.05, clip=(-100.0, 100.0))
        actions = ObservationTermCfg(func=mdp.last_action, clip=(-1.0, 1.0))

    policy: PolicyCfg = PolicyCfg()


@configclass
class EventsCfg:
    """How an episode begins."""

    reset_base = EventTermCfg(
        func=mdp.reset_root_state_uniform, mode="reset", params={"pose_range": {}, "velocity_range": {}}
    )
    reset_joints = EventTermCfg(
        func=velocity_mdp.reset_joints_around_default,
        mode="reset",
        params={"position_scale": (0.5, 1.5), "velocity_range": (-0.1, 0.1)},
    )


@configclass
class RewardsCfg:
    """At most 1.5 a second; the sum is clipped at zero in every step."""

    track_lin_vel_xy = tracking("track_lin_vel_xy_exp", 1.0)
    track_ang_vel_z = tracking("track_ang_vel_z_exp", 0.5)
    joint_torques = RewardTermCfg(func=mdp.joint_torques_l2, weight=-2.5e-5)


@configclass
class TerminationsCfg:
    """A fall is a touch of the base or of a thigh; hips, shanks and feet may touch."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)
    fall = TerminationTermCfg(
        func=mdp.illegal_contact, params={"sensor_cfg": SceneEntityCfg("contact_forces"), "threshold": 1.0}
    )


@configclass
class AnymalFlatEnvCfg(LeggedEnvCfg, RandomizableEnvCfg):
    """ANYmal follows a velocity on flat ground."""

    decimation = 2
    episode_length_s = 50.0
    clip_reward_at_zero = True
    video_views = {"front": VideoViewCfg(follow="robot", eye=(1.8, -2.2, 1.1), target=(0.0, 0.0, 0.4))}

    sim: SimulationCfg = SimulationCfg(
        dt=0.01, physics=physics_presets(LEGGED_NEWTON_10MS, bounce_threshold=0.2), physics_material=FIRM_SURFACE
    )
    scene: SceneCfg = SceneCfg()
    commands: CommandsCfg = CommandsCfg()
    actions: ActionsCfg = ActionsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
