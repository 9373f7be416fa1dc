"""What the Franka cube tasks share. Lengths in metres, in the frame of the environment."""

from __future__ import annotations

from dataclasses import MISSING

import isaaclab.sim as sim_utils
from isaaclab.assets import ArticulationCfg, AssetBaseCfg, RigidObjectCfg
from isaaclab.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import RigidBodyMaterialCfg, SimulationCfg
from isaaclab.utils import configclass
from isaaclab_tasks.utils import preset

from epo_lab.configs.sizes import size
from epo_tasks.common.env_cfg import EpoEnvCfg, VideoViewCfg
from epo_tasks.common.ground_cfg import GroundCfg
from epo_tasks.common.physics import GRIPPER_NEWTON, MANY_CONTACTS, physics_presets
from epo_tasks.common.primitives_cfg import fixed_box, free_box
from epo_tasks.common.reward_terms import reward_per_step
from epo_tasks.robots.franka_panda import ARM_JOINTS, FINGER_JOINTS, FRANKA_PANDA_CFG, GRIP_SITE, HAND

from .mdp import events, observations, terminations
from .mdp.actions_cfg import GripperCfg, OperationalSpaceCfg
from .mdp.goal_cfg import CubeGoalCfg

STEP_DT = 1.0 / 60.0
PLAY_ENVS = 16

TABLE_TOP = 1.025
EDGE = 0.05
DENSITY = 1000.0

WOOD = (0.72, 0.58, 0.42)
RED = (0.6, 0.1, 0.0)
GREEN = (0.0, 0.4, 0.1)

CONTACT_OFFSET = 0.005
"""Distance at which PhysX begins to see a contact."""


def reward(func, value: float, **params) -> RewardTermCfg:
    """Return a reward of ``value`` a step for each unit of ``func``."""
    return reward_per_step(func, value, STEP_DT, **params)


def cube(name: str, edge: float, color: tuple[float, float, float], x: float) -> RigidObjectCfg:
    """Return a cube that lies on the table at this x until the first episode places it."""
    spawn = free_box(
        (edge, edge, edge),
        DENSITY,
        color,
        angular_damping=0.0,
        velocity_iterations=1,
        contact_offset=CONTACT_OFFSET,
    )
    start = RigidObjectCfg.InitialStateCfg(pos=(x, 0.0, TABLE_TOP + edge / 2.0))
    return RigidObjectCfg(prim_path=f"{{ENV_REGEX_NS}}/{name}", spawn=spawn, init_state=start)


def block(name: str, size: tuple[float, float, float], pos: tuple[float, float, float], color) -> AssetBaseCfg:
    """Return a fixed block."""
    return AssetBaseCfg(
        prim_path=f"{{ENV_REGEX_NS}}/{name}",
        spawn=fixed_box(size, color, contact_offset=CONTACT_OFFSET),
        init_state=AssetBaseCfg.InitialStateCfg(pos=pos),
    )


@configclass
class FrankaSceneCfg(InteractiveSceneCfg):
    """The arm on a stand on a table, and a cube."""

    num_envs = size(12288, cpu=96, paper=24576)
    env_spacing = 3.0
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(), collision_group=-1)
    light = AssetBaseCfg(prim_path="/World/light", spawn=sim_utils.DomeLightCfg(intensity=2000.0))
    table = block("Table", (1.2, 1.2, 0.05), (0.0, 0.0, TABLE_TOP - 0.025), WOOD)
    stand = block("Stand", (0.2, 0.2, 0.1), (-0.5, 0.0, TABLE_TOP + 0.05), (0.30, 0.32, 0.36))
    robot: ArticulationCfg = FRANKA_PANDA_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")
    cube: RigidObjectCfg = cube("Cube", EDGE, RED, 0.1)


def gripper(**changes) -> GripperCfg:
    """Return the action of the fingers."""
    return GripperCfg(asset_name="robot", joint_names=list(FINGER_JOINTS), **changes)


@configclass
class ActionsCfg:
    """Seven numbers: displacement and rotation of the hand, and the gripper."""

    arm = OperationalSpaceCfg(asset_name="robot", joint_names=list(ARM_JOINTS), body_name=HAND, body_offset=GRIP_SITE)
    # Newton knows no speed limit of joints
    gripper: GripperCfg = preset(default=gripper(), newton_mjwarp=gripper(target_speed=0.2))


@configclass
class CommandsCfg:
    """The goal."""

    goal: CubeGoalCfg = MISSING


def observation(func) -> ObservationTermCfg:
    """Return a block of the observation."""
    return ObservationTermCfg(func=func, clip=(-5.0, 5.0))


@configclass
class ObservationsCfg:
    """19 numbers without noise; actor and critic see the same."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """The order is that of the reference. No velocities, no joint angles of the arm, no time."""

        cube_pose = observation(observations.cube_pose)
        goal_from_cube = observation(observations.goal_from_cube)
        grip_pose = observation(observations.grip_pose)
        fingers = observation(observations.fingers)

    policy: PolicyCfg = PolicyCfg()


@configclass
class EventsCfg:
    """How an episode begins; the goal places the cubes."""

    reset_arm = EventTermCfg(func=events.reset_arm, mode="reset", params={"noise": 0.25})


@configclass
class TerminationsCfg:
    """Success, and the end of time."""

    success = TerminationTermCfg(func=terminations.success)
    time_out = TerminationTermCfg(func=terminations.time_out, time_out=True)


@configclass
class FrankaEnvCfg(EpoEnvCfg):
    """Base of the two tasks: 299 steps of 1/60 s."""

    decimation = 2
    # the number of steps is rounded up
    episode_length_s = 4.98
    video_views = {
        "side": VideoViewCfg(eye=(0.95, -1.05, 1.75), target=(-0.15, 0.0, 1.28)),
        "top": VideoViewCfg(eye=(0.75, 0.25, 1.70), target=(-0.05, 0.0, 1.06)),
    }

    sim: SimulationCfg = SimulationCfg(
        dt=STEP_DT / 2.0,
        physics=physics_presets(GRIPPER_NEWTON, bounce_threshold=0.2, **MANY_CONTACTS),
        physics_material=RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0, restitution=0.0),
    )
    scene: FrankaSceneCfg = FrankaSceneCfg()
    actions: ActionsCfg = ActionsCfg()
    commands: CommandsCfg = CommandsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def play_mode(self) -> None:
        """Few environments, and goals to be seen."""
        self.scene.num_envs = min(self.scene.num_envs, PLAY_ENVS)
        self.commands.goal.debug_vis = True
