"""Humanoid of the DeepMind Control Suite: 21 torque-driven hinges with passive springs, 40.8 kg."""

from dataclasses import replace

from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .facts import RobotFacts, load_facts
from .spawn_cfg import RobotFactsCfg, rooted


def raise_ankles(facts: RobotFacts, height: float) -> RobotFacts:
    """Return the humanoid with both ankle_x hinges ``height`` above the foot's origin, where ankle_y is.

    The foot's frame sits on ankle_x, so what is fixed to the foot moves down in that frame as the hinge moves up.
    """
    links, joints, offsets = list(facts.links), list(facts.joints), dict(facts.extras["frame_offsets"])
    for side in ("left", "right"):
        name = f"{side}_foot"
        rise = height + offsets[name][2]

        def lower(xyz: tuple[float, ...], rise: float = rise) -> tuple[float, ...]:
            return (xyz[0], xyz[1], xyz[2] - rise)

        foot = facts.link(name)
        shapes = tuple(replace(shape, xyz=lower(shape.xyz)) for shape in foot.shapes)
        links[links.index(foot)] = replace(foot, com=lower(foot.com), shapes=shapes)
        ankle = next(joint for joint in joints if joint.child == name)
        joints[joints.index(ankle)] = replace(ankle, xyz=(ankle.xyz[0], ankle.xyz[1], ankle.xyz[2] + rise))
        offsets[name] = list(lower(tuple(offsets[name])))
    extras = facts.extras | {"frame_offsets": offsets}
    return replace(facts, links=tuple(links), joints=tuple(joints), extras=extras)


DMC_FACTS = load_facts("dmc_humanoid")
"""The Control Suite's own values."""

_reference = DMC_FACTS.extras["variants"]["isaac_gym_reference"]
FACTS = raise_ankles(DMC_FACTS.with_variant("isaac_gym_reference"), _reference["ankle_x_height_above_foot_origin"])
"""Gears, limits, springs, dampings, armatures and shoulder axes of the Isaac Gym humanoid on the same skeleton."""


def humanoid_cfg(facts: RobotFacts, name: str) -> ArticulationCfg:
    """Return the config of the humanoid whose facts are this module's ``name``."""
    return ArticulationCfg(
        spawn=RobotFactsCfg(
            facts=f"{__name__}:{name}",
            self_collision=True,
            activate_contact_sensors=True,
            rigid_props=links(angular_damping=0.01, max_spin=100.0, max_depenetration_velocity=10.0),
            articulation_props=rooted(facts, solver_position_iteration_count=4, solver_velocity_iteration_count=0),
            collision_props={"/.*": [PhysxCollisionCfg(contact_offset=0.02, rest_offset=0.0)]},
        ),
        init_state=ArticulationCfg.InitialStateCfg(
            pos=tuple(facts.extras["default_root_pos"]), joint_pos=facts.extras["default_joint_pos"]
        ),
        actuators={
            # passive springs and dampers are drives to angle zero; motor torque is added as effort by the action
            "springs": ImplicitActuatorCfg(
                joint_names_expr=[".*"],
                stiffness=facts.per_joint("spring_stiffness"),
                damping=facts.per_joint("damping"),
                armature=facts.per_joint("armature"),
                joint_effort_limit=1000.0,
                joint_velocity_limit=facts.per_joint("velocity"),
            )
        },
        joint_ordering=facts.joint_names,
    )


HUMANOID_CFG = humanoid_cfg(FACTS, "FACTS")
DMC_HUMANOID_CFG = humanoid_cfg(DMC_FACTS, "DMC_FACTS")
