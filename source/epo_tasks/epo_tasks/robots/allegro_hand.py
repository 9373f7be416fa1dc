"""Wonik Allegro hand, right: 16 joints, fixed base, palm up, no gravity on its links."""

from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .drives import implicit_drives
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

FACTS = (
    load_facts("allegro_hand")
    .with_variant("isaac_gym_reference")
    .without_contact(("palm_link", "thumb_link_1"), ("palm_link", "thumb_link_2"))
)
"""With the wider joint ranges of the reference, because the action range is the joint range. The thumb's first links
overlap the palm's box by up to 10 mm over most of their range, in the default pose too."""

ALLEGRO_HAND_CFG = ArticulationCfg(
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
    actuators={"fingers": implicit_drives(FACTS)},
    joint_ordering=FACTS.joint_names,
)
