"""``Epo-A1-Flat-v0``: follow a changing velocity command for 20 s. Tracking alone is worth at most 45.

The numbers are those of Isaac Lab 3.0.0's ``IsaacContrib-Velocity-Flat-UnitreeA1``.
"""

from __future__ import annotations

import math

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
from isaaclab.utils.noise import UniformNoiseCfg
from isaaclab_tasks.core.velocity.mdp import feet_air_time
from isaaclab_tasks.utils import preset

from epo_lab.configs.sizes import size
from epo_tasks.common.env_cfg import VideoViewCfg
from epo_tasks.common.ground_cfg import MULTIPLIED_SURFACE, NO_FRICTION, GroundCfg
from epo_tasks.common.legged import LeggedEnvCfg, LeggedSceneCfg, joint_targets, tracking, trunk_com, trunk_mass
from epo_tasks.common.physics import LEGGED_NEWTON, physics_presets
from epo_tasks.robots.unitree_a1 import FACTS, FLAT_LEGS, UNITREE_A1_CFG


def _noise(size: float) -> UniformNoiseCfg:
    return UniformNoiseCfg(n_min=-size, n_max=size)


@configclass
class SceneCfg(LeggedSceneCfg):
    """A1 with the vendor's motors on a plane."""

    env_spacing = 2.5
    ground = AssetBaseCfg(
        prim_path="/World/ground",
        # Newton takes the larger friction of two surfaces: with none on the ground the robot's counts, as if multiplied
        spawn=preset(
            default=GroundCfg(physics_material=MULTIPLIED_SURFACE),
            newton_mjwarp=GroundCfg(physics_material=NO_FRICTION),
        ),
        collision_group=-1,
    )
    robot: ArticulationCfg = UNITREE_A1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot", actuators={"legs": FLAT_LEGS})
    contact_forces = ContactSensorCfg(
        prim_path="{ENV_REGEX_NS}/Robot/(trunk|.*_foot)", history_length=3, track_air_time=True
    )


@configclass
class CommandsCfg:
    """Velocities and a heading, new every 10 s; the yaw rate steers towards the heading."""

    base_velocity = mdp.UniformVelocityCommandCfg(
        asset_name="robot",
        resampling_time_range=(10.0, 10.0),
        rel_standing_envs=0.02,
        rel_heading_envs=1.0,
        heading_command=True,
        heading_control_stiffness=0.5,
        ranges=mdp.UniformVelocityCommandCfg.Ranges(
            lin_vel_x=(-1.0, 1.0), lin_vel_y=(-1.0, 1.0), ang_vel_z=(-1.0, 1.0), heading=(-math.pi, math.pi)
        ),
    )


@configclass
class ActionsCfg:
    """Joint targets around the default pose."""

    joint_pos = joint_targets(FACTS, scale=0.25)


@configclass
class ObservationsCfg:
    """48 numbers with uniform noise."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """Actor and critic see the same."""

        enable_corruption = True
        base_lin_vel = ObservationTermCfg(func=mdp.base_lin_vel, noise=_noise(0.1))
        base_ang_vel = ObservationTermCfg(func=mdp.base_ang_vel, noise=_noise(0.2))
        projected_gravity = ObservationTermCfg(func=mdp.projected_gravity, noise=_noise(0.05))
        velocity_commands = ObservationTermCfg(func=mdp.generated_commands, params={"command_name": "base_velocity"})
        joint_pos = ObservationTermCfg(func=mdp.joint_pos_rel, noise=_noise(0.01))
        joint_vel = ObservationTermCfg(func=mdp.joint_vel_rel, noise=_noise(1.5))
        actions = ObservationTermCfg(func=mdp.last_action)

    policy: PolicyCfg = PolicyCfg()


@configclass
class EventsCfg:
    """What differs from robot to robot, how an episode begins, and pushes."""

    friction = EventTermCfg(
        func=mdp.randomize_rigid_body_material,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names=".*"),
            "static_friction_range": (0.8, 0.8),
            "dynamic_friction_range": (0.6, 0.6),
            "restitution_range": (0.0, 0.0),
            "num_buckets": 64,
        },
    )
    trunk_mass = trunk_mass((1.0 / 1.25, 1.25), "scale", distribution="log_uniform")
    trunk_com = trunk_com(x=0.05, y=0.05, z=0.01)
    reset_base = EventTermCfg(
        func=mdp.reset_root_state_uniform,
        mode="reset",
        params={
            "pose_range": {"x": (-0.5, 0.5), "y": (-0.5, 0.5), "yaw": (-math.pi, math.pi)},
            "velocity_range": dict.fromkeys(("x", "y", "z", "roll", "pitch", "yaw"), (-0.5, 0.5)),
        },
    )
    reset_joints = EventTermCfg(
        func=mdp.reset_joints_by_scale,
        mode="reset",
        params={"position_range": (0.5, 1.5), "velocity_range": (0.0, 0.0)},
    )
    push = EventTermCfg(
        func=mdp.push_by_setting_velocity,
        mode="interval",
        interval_range_s=(10.0, 15.0),
        params={"velocity_range": {"x": (-0.5, 0.5), "y": (-0.5, 0.5)}},
    )


@configclass
class RewardsCfg:
    """At most 2.25 a second for tracking, and a bonus for long steps; clipped at zero in size ``cpu`` only."""

    track_lin_vel_xy = tracking("track_lin_vel_xy_exp", 1.5)
    track_ang_vel_z = tracking("track_ang_vel_z_exp", 0.75)
    vertical_velocity = RewardTermCfg(func=mdp.lin_vel_z_l2, weight=-2.0)
    roll_pitch_rate = RewardTermCfg(func=mdp.ang_vel_xy_l2, weight=-0.05)
    joint_torques = RewardTermCfg(func=mdp.joint_torques_l2, weight=-2.0e-4)
    joint_acceleration = RewardTermCfg(func=mdp.joint_acc_l2, weight=-2.5e-7)
    action_rate = RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01)
    feet_air_time = RewardTermCfg(
        func=feet_air_time,
        weight=0.25,
        params={
            "sensor_cfg": SceneEntityCfg("contact_forces", body_names=".*_foot"),
            "command_name": "base_velocity",
            "threshold": 0.5,
        },
    )
    orientation = RewardTermCfg(func=mdp.flat_orientation_l2, weight=-2.5)


@configclass
class TerminationsCfg:
    """A fall is a touch of the trunk."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)
    fall = TerminationTermCfg(
        func=mdp.illegal_contact,
        params={"sensor_cfg": SceneEntityCfg("contact_forces", body_names="trunk"), "threshold": 1.0},
    )


@configclass
class A1FlatEnvCfg(LeggedEnvCfg):
    """A1 follows a velocity on flat ground."""

    decimation = 4
    episode_length_s = 20.0
    # Note: with 512 environments the penalties of exploring teach standing still before walking is found
    clip_reward_at_zero = size(False, cpu=True)
    video_views = {"front": VideoViewCfg(follow="robot", eye=(1.3, -1.6, 0.8), target=(0.0, 0.0, 0.25))}

    sim: SimulationCfg = SimulationCfg(
        dt=0.005, physics=physics_presets(LEGGED_NEWTON, bounce_threshold=0.5), physics_material=MULTIPLIED_SURFACE
    )
    scene: SceneCfg = SceneCfg()
    commands: CommandsCfg = CommandsCfg()
    actions: ActionsCfg = ActionsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
