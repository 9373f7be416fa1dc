"""``Epo-A1-Parkour-v0``: run from goal to goal over obstacles, on tracks that grow harder. The metric is the level."""

from __future__ import annotations

from isaaclab.actuators import DelayedPDActuatorCfg
from isaaclab.assets import ArticulationCfg
from isaaclab.envs import mdp
from isaaclab.managers import (
    CurriculumTermCfg,
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

from epo_lab.configs.sizes import size
from epo_tasks.common.env_cfg import VideoViewCfg
from epo_tasks.common.ground_cfg import FIRM_SURFACE
from epo_tasks.common.legged import LeggedEnvCfg, LeggedSceneCfg, joint_targets, trunk_com, trunk_mass
from epo_tasks.common.physics import LEGGED_NEWTON, physics_presets
from epo_tasks.common.randomization import RandomizeFriction
from epo_tasks.robots.unitree_a1 import FACTS, PARKOUR_LEGS, UNITREE_A1_CFG

from .mdp import curriculum, events, observations, rewards, terminations
from .mdp.goals_cfg import GoalsCommandCfg
from .terrain.terrain_cfg import ParkourTerrainCfg, ParkourTerrainGeneratorCfg
from .terrain.tracks import TRACKS

ACTION_SCALE = 0.25
"""Radians from the default pose for an action of 1."""

ACTION_LIMIT = 4.8
"""Actions beyond this have no more effect."""

LOOK_INTERVAL = 5
"""Policy steps between two looks at the terrain and at the heading errors: 10 Hz."""

FEET = SceneEntityCfg("contact_forces", body_names=".*_foot")
OTHERS = SceneEntityCfg("contact_forces", body_names=["trunk", ".*_thigh", ".*_calf"])


@configclass
class SceneCfg(LeggedSceneCfg):
    """A1 on a field of tracks."""

    num_envs = size(4096, cpu=320, paper=24576)
    env_spacing = 4.0
    # on a CPU the whole field would take 11 GB and minutes to start; one column of each type has to do
    terrain: ParkourTerrainCfg = ParkourTerrainCfg(
        terrain_generator=ParkourTerrainGeneratorCfg(
            num_cols=size(20, cpu=len(TRACKS), paper=40), horizontal_scale=size(0.05, cpu=0.1)
        )
    )
    robot: ArticulationCfg = UNITREE_A1_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    contact_forces = ContactSensorCfg(prim_path="{ENV_REGEX_NS}/Robot/(trunk|.*_thigh|.*_calf|.*_foot)")


@configclass
class CommandsCfg:
    """Goals, and a speed that is drawn every 6 s."""

    goals = GoalsCommandCfg(look_interval=LOOK_INTERVAL)


@configclass
class ActionsCfg:
    """Joint targets within 1.2 rad of the default pose."""

    joint_pos = joint_targets(FACTS, ACTION_SCALE, ACTION_LIMIT)


@configclass
class ProprioceptionCfg(ObservationGroupCfg):
    """50 numbers that the robot itself can feel or is told. Isaac Lab clips before it scales: clips are 100 / scale."""

    base_ang_vel = ObservationTermCfg(func=mdp.base_ang_vel, scale=0.25, clip=(-400.0, 400.0))
    roll_pitch = ObservationTermCfg(func=observations.roll_pitch)
    heading_errors = ObservationTermCfg(func=observations.heading_errors)
    speed_command = ObservationTermCfg(func=mdp.generated_commands, params={"command_name": "goals"})
    track_kind = ObservationTermCfg(func=observations.track_kind)
    joint_pos = ObservationTermCfg(func=mdp.joint_pos_rel, clip=(-100.0, 100.0))
    joint_vel = ObservationTermCfg(func=mdp.joint_vel_rel, scale=0.05, clip=(-2000.0, 2000.0))
    actions = ObservationTermCfg(func=mdp.last_action, clip=(-ACTION_LIMIT, ACTION_LIMIT))
    feet_contact = ObservationTermCfg(func=observations.feet_contact)


@configclass
class PolicyCfg(ProprioceptionCfg):
    """214 numbers for actor and critic: also the terrain ahead, the velocity, and what differs from robot to robot."""

    height_scan = ObservationTermCfg(
        func=observations.HeightScan, params={"interval": LOOK_INTERVAL, "offset": 0.3}, clip=(-1.0, 1.0)
    )
    base_lin_vel = ObservationTermCfg(func=mdp.base_lin_vel, scale=2.0, clip=(-50.0, 50.0))
    robot_properties = ObservationTermCfg(func=observations.RobotProperties)


@configclass
class HistoryCfg(ProprioceptionCfg):
    """Ten steps of the reference's 53 proprioceptive numbers: heading errors are hidden, three entries always empty."""

    heading_errors = ObservationTermCfg(func=observations.nothing, params={"size": 2})
    empty = ObservationTermCfg(func=observations.nothing, params={"size": 3})
    history_length = 10
    flatten_history_dim = True


@configclass
class ObservationsCfg:
    """Without noise."""

    policy: PolicyCfg = PolicyCfg()
    history: HistoryCfg | None = None
    """Filled in if :attr:`A1ParkourEnvCfg.observe_history` is set."""


@configclass
class EventsCfg:
    """What differs from robot to robot, pushes, and how an episode begins."""

    friction = EventTermCfg(
        func=RandomizeFriction,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names=".*"),
            "friction_range": (0.6, 2.0),
            "num_buckets": 64,
            "ground_friction": FIRM_SURFACE.static_friction,
        },
    )
    trunk_mass = trunk_mass((0.0, 3.0), "add")
    trunk_com = trunk_com(x=0.2, y=0.2, z=0.2)
    motor_strength = EventTermCfg(
        func=events.RandomizeMotorStrength,
        mode="startup",
        params={"asset_cfg": SceneEntityCfg("robot"), "strength_range": (0.8, 1.2)},
    )
    push = EventTermCfg(
        func=events.push_by_overwriting_velocity,
        mode="interval",
        interval_range_s=(8.0, 8.0),
        is_global_time=True,
        params={"speed": 0.5},
    )
    reset_base = EventTermCfg(
        func=mdp.reset_root_state_uniform, mode="reset", params={"pose_range": {}, "velocity_range": {}}
    )
    reset_joints = EventTermCfg(
        func=events.reset_joints_beyond_default, mode="reset", params={"offset_range": (0.0, 0.9)}
    )


@configclass
class RewardsCfg:
    """At most 2 a second; the sum is clipped at zero in every step."""

    goal_velocity = RewardTermCfg(func=rewards.goal_velocity, weight=1.5)
    heading = RewardTermCfg(func=rewards.heading, weight=0.5)
    vertical_velocity = RewardTermCfg(func=rewards.vertical_velocity, weight=-1.0)
    roll_pitch_rate = RewardTermCfg(func=mdp.ang_vel_xy_l2, weight=-0.05)
    orientation = RewardTermCfg(func=rewards.orientation, weight=-1.0)
    joint_acceleration = RewardTermCfg(func=rewards.JointAcceleration, weight=-2.5e-7)
    collision = RewardTermCfg(func=rewards.collision, weight=-10.0, params={"sensor_cfg": OTHERS, "threshold": 0.1})
    action_rate = RewardTermCfg(func=rewards.action_rate, weight=-0.1, params={"limit": ACTION_LIMIT})
    torque_change = RewardTermCfg(func=rewards.TorqueChange, weight=-1.0e-7)
    torque = RewardTermCfg(func=mdp.joint_torques_l2, weight=-1.0e-5)
    hip_posture = RewardTermCfg(
        func=rewards.posture,
        weight=-0.5,
        params={"asset_cfg": SceneEntityCfg("robot", joint_names=".*_hip_joint")},
    )
    posture = RewardTermCfg(func=rewards.posture, weight=-0.04)
    foot_stumble = RewardTermCfg(func=rewards.foot_stumble, weight=-1.0, params={"sensor_cfg": FEET})
    foot_edge = RewardTermCfg(
        func=rewards.foot_edge,
        weight=-1.0,
        params={"asset_cfg": SceneEntityCfg("robot", body_names=".*_foot"), "least_level": 4},
    )


@configclass
class TerminationsCfg:
    """Falls are terminations; the end of time or of the track is a truncation. The trunk may touch."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)
    all_goals_reached = TerminationTermCfg(func=terminations.all_goals_reached, time_out=True)
    tilted = TerminationTermCfg(func=terminations.tilted, params={"limit": 1.5})
    fell = TerminationTermCfg(func=terminations.fell, params={"height": -0.25})


@configclass
class CurriculumCfg:
    """Levels."""

    terrain_levels = CurriculumTermCfg(func=curriculum.terrain_levels, params={"mode": "distance"})


@configclass
class A1ParkourEnvCfg(LeggedEnvCfg):
    """A1 runs over obstacles."""

    decimation = 4
    episode_length_s = 20.0
    clip_reward_at_zero = True
    video_views = {"front": VideoViewCfg(follow="robot", eye=(1.6, -2.2, 1.3), target=(0.2, 0.0, 0.2))}

    promotion: str = "distance"
    """Who goes up a level: ``distance`` (default), or ``goals``, those who reached all goals too."""

    action_delay_steps: int = 0
    """Policy steps by which joint targets come late. Default 0; the reference ends with 1."""

    observe_history: bool = False
    """Whether there is a group ``history`` of 530 observations. Default False."""

    sim: SimulationCfg = SimulationCfg(
        dt=0.005, physics=physics_presets(LEGGED_NEWTON, bounce_threshold=0.5), physics_material=FIRM_SURFACE
    )
    scene: SceneCfg = SceneCfg()
    commands: CommandsCfg = CommandsCfg()
    actions: ActionsCfg = ActionsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
    curriculum: CurriculumCfg = CurriculumCfg()

    def complete(self) -> None:
        """Apply the options."""
        super().complete()
        self.curriculum.terrain_levels.params["mode"] = self.promotion
        if self.observe_history:
            self.observations.history = HistoryCfg()
        if self.action_delay_steps:
            delay = self.action_delay_steps * self.decimation
            self.scene.robot.actuators["legs"] = DelayedPDActuatorCfg(
                joint_names_expr=PARKOUR_LEGS.joint_names_expr,
                stiffness=PARKOUR_LEGS.stiffness,
                damping=PARKOUR_LEGS.damping,
                actuator_effort_limit=PARKOUR_LEGS.actuator_effort_limit,
                min_delay=delay,
                max_delay=delay,
            )
