"""Shadow dexterous hand, right: 24 joints, 20 motors, fixed base, palm up, no gravity on its links.

The distal joints FFJ0, MFJ0, RFJ0 and LFJ0 have no motor: tendons couple them to J1.
"""

from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .drives import implicit_drives
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

_hand = load_facts("shadow_hand").without_contact(("forearm", "palm"))
FACTS = _hand.with_tendons("tendons")
"""The forearm is a bounding box here, which the palm enters by up to 15 mm in half of the wrist's range."""

LEVER_ARM_FACTS = _hand.with_tendons("tendons", lever_arms=True)
"""The same with the tendons' stiffness of 30 taken as N/m, which is 0.0015 N m/rad at the distal joints."""

TENDON_STIFFNESS = {"stiff": f"{__name__}:FACTS", "reference": f"{__name__}:LEVER_ARM_FACTS"}
"""Ways to read the reference's stiffness and damping of tendons (``docs/physics.md``, Shadow hand tendons)."""

MOTORS = FACTS.extras["variants"]["motor_order"]["joints"]

SHADOW_HAND_CFG = ArticulationCfg(
    spawn=RobotFactsCfg(
        facts=f"{__name__}:FACTS",
        self_collision=True,
        rigid_props=links(weightless=True, angular_damping=0.01, max_depenetration_velocity=1000.0),
        articulation_props=rooted(FACTS, solver_position_iteration_count=8, solver_velocity_iteration_count=0),
        collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.002, rest_offset=0.0)]},
    ),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=tuple(FACTS.extras["default_root_pos"]),
        rot=tuple(FACTS.extras["default_root_quat_xyzw"]),
        joint_pos=FACTS.extras["default_joint_pos"],
    ),
    actuators={"fingers": implicit_drives(FACTS, MOTORS)},
    joint_ordering=FACTS.joint_names,
)
