"""``Epo-Humanoid-Run-v0``: run ahead for 1,000 steps. At 10 m/s the return is about 12,600."""

from __future__ import annotations

import isaaclab.sim as sim_utils
from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.managers import EventTermCfg, ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg, TerminationTermCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sensors import JointWrenchSensorCfg
from isaaclab.sim import RigidBodyMaterialCfg, SimulationCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.locomotion import mdp

from epo_lab.base.errors import UserError
from epo_lab.configs.sizes import size
from epo_tasks.common.actions_cfg import JointTorqueCfg
from epo_tasks.common.env_cfg import RandomizableEnvCfg, VideoViewCfg
from epo_tasks.common.ground_cfg import GroundCfg
from epo_tasks.common.physics import LEGGED_NEWTON, physics_presets
from epo_tasks.common.reward_terms import reward_per_step
from epo_tasks.robots.dmc_humanoid import DMC_FACTS, DMC_HUMANOID_CFG, FACTS, HUMANOID_CFG
from epo_tasks.robots.facts import RobotFacts

from .mdp import body, observations, rewards

STEP_DT = 1.0 / 60.0
TARGET = (1000.0, 0.0, 0.0)
PLAY_ENVS = 16

BODIES = {"isaac_gym": (FACTS, HUMANOID_CFG), "dmc": (DMC_FACTS, DMC_HUMANOID_CFG)}
"""Humanoids on the same skeleton: with the motors, springs and limits of Isaac Gym's or of the Control Suite."""

WHOLE_ROBOT = SceneEntityCfg("robot")


@configclass
class SceneCfg(InteractiveSceneCfg):
    """The humanoid on a plane."""

    num_envs = size(6144, cpu=384, paper=24576)
    env_spacing = 5.0
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(), collision_group=-1)
    light = AssetBaseCfg(prim_path="/World/light", spawn=sim_utils.DomeLightCfg(intensity=2000.0))
    robot: ArticulationCfg = HUMANOID_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    joint_wrench = JointWrenchSensorCfg(prim_path="{ENV_REGEX_NS}/Robot")


@configclass
class ActionsCfg:
    """21 torques; an action of +-1 is the whole torque of a motor, and more has no more effect."""

    joint_effort = JointTorqueCfg(asset_name="robot", joint_names=list(FACTS.joint_names), preserve_order=True)


@configclass
class ObservationsCfg:
    """87 numbers without noise."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """Actor and critic see the same."""

        height = ObservationTermCfg(func=mdp.base_pos_z)
        base_lin_vel = ObservationTermCfg(func=mdp.base_lin_vel)
        base_ang_vel = ObservationTermCfg(func=mdp.base_ang_vel, scale=0.25)
        yaw_roll = ObservationTermCfg(func=mdp.base_yaw_roll)
        angle_to_target = ObservationTermCfg(func=mdp.base_angle_to_target, params={"target_pos": TARGET})
        up = ObservationTermCfg(func=mdp.base_up_proj)
        heading = ObservationTermCfg(func=mdp.base_heading_proj, params={"target_pos": TARGET})
        joint_pos = ObservationTermCfg(func=mdp.joint_pos_limit_normalized)
        joint_vel = ObservationTermCfg(func=mdp.joint_vel_rel, scale=0.1)
        feet = ObservationTermCfg(
            func=mdp.body_incoming_wrench,
            scale=0.01,
            params={"sensor_cfg": SceneEntityCfg("joint_wrench", body_names=["left_foot", "right_foot"])},
        )
        actions = ObservationTermCfg(func=mdp.last_action, clip=(-1.0, 1.0))

    policy: ObservationGroupCfg = PolicyCfg()


@configclass
class DmcPolicyCfg(ObservationGroupCfg):
    """The 67 numbers of the Control Suite."""

    joint_pos = ObservationTermCfg(func=mdp.joint_pos)
    head_height = ObservationTermCfg(func=observations.head_height)
    extremities = ObservationTermCfg(func=observations.extremities)
    torso_vertical = ObservationTermCfg(func=body.vertical_in_torso)
    com_velocity = ObservationTermCfg(func=body.center_of_mass_velocity)
    velocity = ObservationTermCfg(func=observations.velocity)


@configclass
class EventsCfg:
    """How an episode begins: upright, at rest, with every joint a little off."""

    reset_base = EventTermCfg(
        func=mdp.reset_root_state_uniform, mode="reset", params={"pose_range": {}, "velocity_range": {}}
    )
    reset_joints = EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={"position_range": (-0.2, 0.2), "velocity_range": (-0.1, 0.1)},
    )


def reward(func, value: float, **params):
    """Return a reward of ``value`` a step for each unit of ``func``."""
    return reward_per_step(func, value, STEP_DT, **params)


@configclass
class RewardsCfg:
    """Amounts per step."""

    progress = reward(rewards.Progress, 1.0, target_pos=TARGET, speed_cap=10.0)
    alive = reward(mdp.is_alive, 2.0)
    upright = reward(mdp.upright_posture_bonus, 0.1, threshold=0.93)
    heading = reward(mdp.move_to_target_bonus, 0.5, threshold=0.8, target_pos=TARGET)
    action = reward(mdp.action_l2, -0.01)
    # the reference multiplies joint velocities by 0.1 before it weighs the product by 0.05
    energy = reward(mdp.power_consumption, -0.005, gear_ratio={}, asset_cfg=WHOLE_ROBOT)
    joint_limits = reward(
        mdp.joint_pos_limits_penalty_ratio, -0.25, threshold=0.98, gear_ratio={}, asset_cfg=WHOLE_ROBOT
    )
    # this term cancels the time step itself
    fall = reward_per_step(mdp.terminated_penalty, -1.0, 1.0)


@configclass
class TerminationsCfg:
    """A fall is a low torso."""

    time_out = TerminationTermCfg(func=mdp.time_out, time_out=True)
    fall = TerminationTermCfg(func=mdp.root_height_below_minimum, params={"minimum_height": 0.8})


@configclass
class HumanoidEnvCfg(RandomizableEnvCfg):
    """Base of the humanoid's tasks."""

    video_views = {"front": VideoViewCfg(follow="robot", eye=(2.0, -2.2, 1.4), target=(0.0, 0.0, 0.85))}

    body: str = "isaac_gym"
    """Motors, springs and limits: ``isaac_gym`` or ``dmc``."""

    observation: str = "isaac_lab"
    """What the policy sees: ``isaac_lab`` (87 numbers) or ``dmc`` (67, those of the Control Suite)."""

    scene: SceneCfg = SceneCfg()
    actions: ActionsCfg = ActionsCfg()
    observations: ObservationsCfg = ObservationsCfg()

    def facts(self) -> RobotFacts:
        """Return the humanoid in use."""
        return _choose("body", self.body, BODIES)[0]

    def complete(self) -> None:
        """Put the chosen body with the torques of its motors, observation and randomisation in place."""
        facts, robot = _choose("body", self.body, BODIES)
        gears = facts.per_joint("effort")
        self.scene.robot = robot.replace(prim_path="{ENV_REGEX_NS}/Robot")
        self.actions.joint_effort.scale = gears
        self.actions.joint_effort.clip = {name: (-gear, gear) for name, gear in gears.items()}
        if _choose("observation", self.observation, {"isaac_lab": False, "dmc": True}):
            self.observations.policy = DmcPolicyCfg()
            self.scene.joint_wrench = None
        super().complete()

    def play_mode(self) -> None:
        """Few environments."""
        self.scene.num_envs = min(self.scene.num_envs, PLAY_ENVS)


@configclass
class HumanoidRunEnvCfg(HumanoidEnvCfg):
    """The humanoid runs on flat ground; its default body, ``isaac_gym``, is the one behind the published scores."""

    decimation = 2
    # a hair below 1,000 steps, because the number of steps is rounded up
    episode_length_s = 16.66
    episode_sums = {"dmc_score": rewards.dmc_score}
    # its feet have just come down; without torques it falls within a second
    settle_steps = 8

    speed_cap: float | None = 10.0
    """Largest speed that is rewarded [m/s]. Default 10; None: none, as in the reference."""

    sim: SimulationCfg = SimulationCfg(
        dt=STEP_DT / 2.0,
        physics=physics_presets(LEGGED_NEWTON, bounce_threshold=0.2),
        physics_material=RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0, restitution=0.0),
    )
    events: EventsCfg = EventsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def complete(self) -> None:
        """Let the rewards know the chosen motors and the cap."""
        gears = self.facts().per_joint("effort")
        self.rewards.energy.params["gear_ratio"] = self.rewards.joint_limits.params["gear_ratio"] = gears
        self.rewards.progress.params["speed_cap"] = self.speed_cap
        super().complete()


def _choose(name: str, value: str, known: dict):
    if value not in known:
        raise UserError(f"env.{name} '{value}' is none of {', '.join(known)}")
    return known[value]
