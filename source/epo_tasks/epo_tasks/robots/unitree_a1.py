"""Unitree A1: 12 joints, 12.45 kg. Explicit PD torques as in the parkour reference; a DC motor model on flat ground."""

from isaaclab.actuators import DCMotorCfg, IdealPDActuatorCfg
from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .facts import load_facts
from .spawn_cfg import RobotFactsCfg, rooted

FACTS = load_facts("unitree_a1")
FEET = FACTS.extras["end_links"]

PARKOUR_LEGS = IdealPDActuatorCfg(
    joint_names_expr=[".*"],
    stiffness=FACTS.per_joint("drive_stiffness"),
    damping=FACTS.per_joint("drive_damping"),
    actuator_effort_limit=FACTS.per_joint("effort"),
)
"""Kp 40, Kd 1, torques clipped at 20 N m (hip) and 30 N m (thigh, calf)."""

FLAT_LEGS = DCMotorCfg(
    joint_names_expr=[".*"],
    stiffness=25.0,
    damping=0.5,
    actuator_effort_limit=33.5,
    saturation_effort=33.5,
    actuator_velocity_limit=21.0,
)
"""The vendor's motors: 33.5 N m at rest, no torque at 21 rad/s."""

UNITREE_A1_CFG = ArticulationCfg(
    spawn=RobotFactsCfg(
        facts=f"{__name__}:FACTS",
        activate_contact_sensors=True,
        rigid_props=links(angular_damping=0.0, max_spin=1000.0, max_depenetration_velocity=1.0),
        articulation_props=rooted(FACTS, solver_position_iteration_count=4, solver_velocity_iteration_count=0),
        collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.01, rest_offset=0.0)]},
    ),
    init_state=ArticulationCfg.InitialStateCfg(
        pos=tuple(FACTS.extras["default_root_pos"]), joint_pos=FACTS.extras["default_joint_pos"]
    ),
    actuators={"legs": PARKOUR_LEGS},
    soft_joint_pos_limit_factor=0.9,
    joint_ordering=FACTS.joint_names,
)
