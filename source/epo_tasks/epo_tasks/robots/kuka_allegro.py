"""KUKA iiwa 7 with a right Allegro hand: 23 joints, fixed base, no gravity on its links."""

from isaaclab.assets import ArticulationCfg
from isaaclab.sim import UsdFileCfg
from isaaclab.utils.assets import ISAACLAB_NUCLEUS_DIR
from isaaclab_physx.sim.schemas import PhysxArticulationCfg, PhysxCollisionCfg
from isaaclab_tasks.utils import preset

from .bodies import links
from .drives import implicit_drives
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

FACTS = load_facts("kuka_allegro").merge_fixed()
"""Flange, mount and palm are merged into ``iiwa7_link_7``, the palm body of the reference."""

ARM_JOINTS = FACTS.joint_names[:7]
HAND_JOINTS = FACTS.joint_names[7:]

LINKS = links(weightless=True, linear_damping=0.01, angular_damping=0.01, max_depenetration_velocity=1000.0)

KUKA_ALLEGRO_CFG = ArticulationCfg(
    spawn=RobotFactsCfg(
        facts=f"{__name__}:FACTS",
        self_collision=True,
        activate_contact_sensors=False,
        rigid_props=LINKS,
        articulation_props=rooted(FACTS, solver_position_iteration_count=8, solver_velocity_iteration_count=0),
        collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.002, rest_offset=0.0)]},
    ),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=tuple(FACTS.extras["default_root_pos"]), joint_pos=FACTS.extras["default_joint_pos"]
    ),
    actuators={
        "arm": implicit_drives(FACTS, ARM_JOINTS),
        # On PhysX a little armature calms the fingers under random actions (29 instead of 102 rad/s). On Newton the
        # effort is clamped while the drive's implicit damping is not, so that the reference's damping of 5 would make
        # the fingers lag by a radian: weaker gains saturate the 0.35 N m drives almost as early and track.
        "hand": preset(
            default=implicit_drives(FACTS, HAND_JOINTS, armature=0.002),
            newton_mjwarp=implicit_drives(FACTS, HAND_JOINTS, stiffness=3.0, damping=0.3, armature=0.002),
        ),
    },
    joint_ordering=FACTS.joint_names,
)

NUCLEUS_SPAWN = UsdFileCfg(
    usd_path=f"{ISAACLAB_NUCLEUS_DIR}/Robots/KukaAllegro/kuka.usd",
    rigid_props={"/.*": LINKS["/[^/]*"]},
    articulation_props=[PhysxArticulationCfg(enabled_self_collisions=True, solver_position_iteration_count=8)],
)
"""Isaac Lab's own robot with meshes, for those who reach its content server: ``presets=nucleus``."""
