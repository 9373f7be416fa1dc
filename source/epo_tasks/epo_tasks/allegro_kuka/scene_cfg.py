"""Table, object, bucket and obstacles. Lengths in metres, in the frame of the environment."""

from __future__ import annotations

import math

import isaaclab.sim as sim_utils
from isaaclab.assets import ArticulationCfg, AssetBaseCfg, RigidObjectCfg
from isaaclab.cloner import CloneCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import MultiAssetSpawnerCfg
from isaaclab.utils import configclass
from isaaclab_tasks.utils import preset

from epo_lab.configs.sizes import size
from epo_tasks.common.assignment import round_robin
from epo_tasks.common.ground_cfg import GroundCfg
from epo_tasks.common.primitives_cfg import PrimitiveCfg, PrimitivesCfg, box, fixed_box, free_box, moved_body
from epo_tasks.robots.kuka_allegro import KUKA_ALLEGRO_CFG, NUCLEUS_SPAWN

from .cuboids import DENSITY, EDGE

WOOD = (0.72, 0.58, 0.42)
OBJECT = (0.85, 0.30, 0.25)
BUCKET = (0.30, 0.55, 0.42)
OBSTACLE = (0.45, 0.47, 0.62)

TABLE_TOP = 0.53


def table(width: float) -> AssetBaseCfg:
    """Return a table ``width`` wide; it floats from 0.23 to 0.53."""
    return AssetBaseCfg(
        prim_path="{ENV_REGEX_NS}/Table",
        spawn=fixed_box((width, 0.4, 0.3), WOOD),
        init_state=AssetBaseCfg.InitialStateCfg(pos=(0.0, 0.0, TABLE_TOP - 0.15)),
    )


def cuboid(scales) -> PrimitivesCfg:
    """Return an object to be handled."""
    return free_box(tuple(float(EDGE * scale) for scale in scales), DENSITY, OBJECT)


def arm(name: str, x: float, y: float, yaw: float, elbow: float) -> ArticulationCfg:
    """Return an arm that stands at a place, turned about the vertical [deg]; ``elbow`` is the rest angle of joint 4."""
    half = math.radians(yaw) / 2.0
    joints = {**KUKA_ALLEGRO_CFG.init_state.joint_pos, "iiwa7_joint_4": elbow}
    return KUKA_ALLEGRO_CFG.replace(
        prim_path=f"{{ENV_REGEX_NS}}/{name}",
        spawn=preset(default=KUKA_ALLEGRO_CFG.spawn, nucleus=NUCLEUS_SPAWN),
        init_state=ArticulationCfg.InitialStateCfg(
            pos=(x, y, 0.0), rot=(0.0, 0.0, math.sin(half), math.cos(half)), joint_pos=joints
        ),
    )


def bucket() -> RigidObjectCfg:
    """Return a pail of a floor and twelve walls that lean outwards; it stands on its origin."""
    walls = []
    for index in range(12):
        angle = math.radians(30.0 * index)
        xyz = (0.0907 * math.cos(angle), 0.0907 * math.sin(angle), 0.102)
        walls.append(box((0.0135, 0.062, 0.196), xyz, (0.0, math.radians(10.4), angle)))
    floor = PrimitiveCfg(type="cylinder", size={"radius": 0.076, "length": 0.010}, xyz=(0.0, 0.0, 0.005))
    return RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/Bucket",
        spawn=moved_body([floor, *walls], BUCKET),
        init_state=RigidObjectCfg.InitialStateCfg(pos=(0.6, 0.0, 0.0)),
    )


def wall(name: str, bottom: float, top: float) -> AssetBaseCfg:
    """Return a fixed wall across the middle of the table."""
    return AssetBaseCfg(
        prim_path=f"{{ENV_REGEX_NS}}/{name}",
        spawn=fixed_box((0.05, 0.4, top - bottom), OBSTACLE),
        init_state=AssetBaseCfg.InitialStateCfg(pos=(0.0, 0.0, (bottom + top) / 2.0)),
    )


def partition() -> RigidObjectCfg:
    """Return a movable wall of 2.4 kg that stands on the table."""
    return RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/Partition",
        spawn=free_box((0.05, 0.4, 0.3), DENSITY, OBSTACLE),
        init_state=RigidObjectCfg.InitialStateCfg(pos=(0.0, 0.0, TABLE_TOP + 0.15)),
    )


@configclass
class KukaSceneCfg(InteractiveSceneCfg):
    """What all tasks have."""

    num_envs = size(6144, cpu=96, paper=24576)
    # environment i holds object i modulo their number; Isaac Lab would give neighbours the same one
    clone_cfg: CloneCfg = CloneCfg(clone_strategy=round_robin)

    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(), collision_group=-1)
    light = AssetBaseCfg(prim_path="/World/light", spawn=sim_utils.DomeLightCfg(intensity=2000.0))
    object: RigidObjectCfg = RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/Object",
        # the environment's config fills in the objects it was asked for
        spawn=MultiAssetSpawnerCfg(assets_cfg=[cuboid((1.0, 1.0, 1.0))]),
        init_state=RigidObjectCfg.InitialStateCfg(pos=(0.0, 0.0, 0.63)),
    )


@configclass
class OneArmSceneCfg(KukaSceneCfg):
    """One arm behind a table."""

    env_spacing = 2.4
    table = table(0.475)
    robot: ArticulationCfg = arm("Robot", 0.0, 0.8, yaw=0.0, elbow=1.376)


@configclass
class TwoArmSceneCfg(KukaSceneCfg):
    """Two arms that face each other over a wide table."""

    env_spacing = 3.5
    table = table(1.1)
    robot_0: ArticulationCfg = arm("Robot_0", -1.1, 0.0, yaw=90.0, elbow=1.6)
    robot_1: ArticulationCfg = arm("Robot_1", 1.1, 0.0, yaw=-90.0, elbow=1.6)
