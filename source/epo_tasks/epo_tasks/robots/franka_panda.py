"""Franka Emika Panda with its two-finger hand: 7 hinges driven by torques, 2 sliders, no gravity on its links."""

from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg
from isaaclab_tasks.utils import preset

from .bodies import links
from .drives import implicit_drives
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

FACTS = load_facts("franka_panda")
"""With the inertias that Franka publishes; the reference simulator makes up its own from the hulls of the links."""

MUJOCO_FACTS = FACTS.with_variant("mujoco_fingers")
"""The same with weaker fingers: MuJoCo's contacts give way where 15 g press with 200 N on a cube of 125 g."""

ARM_COLUMNS = slice(0, 7)
"""Where the arm's joints are among all, on every engine."""

ARM_JOINTS = FACTS.joint_names[ARM_COLUMNS]
FINGER_JOINTS = FACTS.joint_names[7:]
FINGERS = ("panda_leftfinger", "panda_rightfinger")

HAND = "panda_hand"
GRIP_SITE = tuple(FACTS.extras["frame_offsets"]["grip_site"]["xyz"])
"""The point between the fingertips, in the frame of the hand [m]."""

FINGERTIPS = tuple(tuple(FACTS.extras["frame_offsets"][f"{name[6:]}_tip"]["xyz"]) for name in FINGERS)
"""The middle of each fingertip's surface, in the frame of its finger [m]."""

FRANKA_PANDA_CFG = ArticulationCfg(
    spawn=RobotFactsCfg(
        facts=f"{__name__}:FACTS",
        self_collision=True,
        rigid_props=links(weightless=True, angular_damping=0.0, max_depenetration_velocity=1000.0),
        articulation_props=rooted(FACTS, solver_position_iteration_count=8, solver_velocity_iteration_count=1),
        collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.005, rest_offset=0.0)]},
    ),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=tuple(FACTS.extras["default_root_pos"]),
        rot=tuple(FACTS.extras["default_root_quat_xyzw"]),
        joint_pos=FACTS.extras["default_joint_pos"],
    ),
    actuators={
        # without stiffness and damping: the joints take the torques of operational-space control, nothing else
        "arm": implicit_drives(FACTS, ARM_JOINTS),
        # On PhysX the task's drives press fingers of 15 g 8 mm deep into a cube; with an armature of 0.3 kg it is 1 mm.
        # In free motion the speed limit decides, not the inertia.
        "fingers": preset(
            default=implicit_drives(FACTS, FINGER_JOINTS, armature=0.3),
            newton_mjwarp=implicit_drives(MUJOCO_FACTS, FINGER_JOINTS),
        ),
    },
    joint_ordering=FACTS.joint_names,
)
