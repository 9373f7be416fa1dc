"""ANYmal C: 12 joints, 52.1 kg, implicit position drives as in the reference flat task."""

from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .drives import implicit_drives
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

FACTS = load_facts("anymal_c").with_variant("isaac_gym_reference")

ANYMAL_C_CFG = ArticulationCfg(
    spawn=RobotFactsCfg(
        facts=f"{__name__}:FACTS",
        self_collision=False,
        round_cylinders=True,
        activate_contact_sensors=True,
        rigid_props=links(angular_damping=0.0, max_depenetration_velocity=100.0),
        articulation_props=rooted(FACTS, solver_position_iteration_count=8, solver_velocity_iteration_count=1),
        collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.02, rest_offset=0.0)]},
    ),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=tuple(FACTS.extras["default_root_pos"]), joint_pos=FACTS.extras["default_joint_pos"]
    ),
    actuators={"legs": implicit_drives(FACTS)},
    joint_ordering=FACTS.joint_names,
)
"""The reference's 4 position iterations let the robot sink on ovphysx at decimation 2; 8 hold it."""
