"""Wonik Allegro hand, right: 16 joints, fixed base, palm up, no gravity on its links, touch sensors as fingertips.

The fingertips of the reference's hand are touch sensors, which reach farther than the vendor's round ones in the facts.
"""

from dataclasses import replace
from math import pi

import numpy as np
from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxCollisionCfg

from .bodies import links
from .drives import implicit_drives
from .facts import RobotFacts, Shape, load_facts, rotation_matrix
from .spawn_cfg import RobotFactsCfg, rooted

REACH = {"index": 0.0622, "middle": 0.0622, "ring": 0.0622, "thumb": 0.0771}
"""How far the reference's fingertips reach beyond their last joint, along the finger [m]."""

BASE_RADIUS = 0.009
"""Half the width of the part that carries the sensor [m]: 9.2 mm at a finger, 8.8 mm at the thumb."""


def with_touch_sensors(facts: RobotFacts) -> RobotFacts:
    """Return the hand with the reference's fingertips: a sphere where the last link ends and a capsule beyond it.

    A tip's frame is the centre of its round end. Its mass is that of the facts, 16.8 g (in the reference 21 g), spread
    evenly over the capsule.
    """
    hulls = load_facts("kuka_allegro").extras["reference_hull_aabb"]
    tips, places = {}, {}
    for finger, reach in REACH.items():
        near, far, radius = sensor_axis(finger, reach)
        length = float(np.linalg.norm(far - near))
        axis = (far - near) / length
        middle, lean = tuple((0.5 * (near - far)).tolist()), float(np.arctan2(axis[0], axis[2]))
        base = np.array([0.0, 0.0, hulls[f"{finger}_link_3"]["max"][0] - BASE_RADIUS])
        shapes = (
            Shape("capsule", {"radius": radius, "length": length}, middle, (0.0, lean, 0.0)),
            Shape("sphere", {"radius": BASE_RADIUS}, tuple((base - far).tolist()), (0.0, 0.0, 0.0)),
        )
        tip = facts.link(f"{finger}_tip")
        inertia = capsule_inertia(tip.mass, radius, length, axis)
        tips[tip.name] = replace(tip, com=middle, inertia=inertia, shapes=shapes)
        places[tip.name] = tuple(far.tolist())
    return replace(
        facts,
        links=tuple(tips.get(link.name, link) for link in facts.links),
        joints=tuple(replace(joint, xyz=places.get(joint.child, joint.xyz)) for joint in facts.joints),
    )


def sensor_axis(finger: str, reach: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the ends of a sensor's axis in the frame of the finger's last link, and its radius [m].

    It is the capsule that was fitted to the reference's sensor for the facts of arm and hand, whose last links are the
    same. It leans to the inside of the hand by 17 degrees. The fit reaches up to 1 mm too far and is cut to ``reach``.
    """
    capsule = load_facts("kuka_allegro").extras["variants"]["sensor_tip"][f"{finger}_link_3"][0]
    # x, y, z of a finger are there along it, inwards and across: z, x and y here
    centre, axis = np.roll(capsule["xyz"], -1), np.roll(rotation_matrix(capsule["rpy"])[:, 2], -1)
    radius = capsule["size"]["radius"]
    near = centre - 0.5 * capsule["size"]["length"] * axis
    far = near + (reach - radius - near[2]) / axis[2] * axis
    return near.round(6), far.round(6), radius


def capsule_inertia(mass: float, radius: float, length: float, axis: np.ndarray) -> tuple[float, ...]:
    """Return (ixx, iyy, izz, ixy, ixz, iyz) of a solid capsule along a unit axis, about its centre of mass [kg m^2]."""
    tube, ball = pi * radius**2 * length, 4.0 / 3.0 * pi * radius**3
    tube, ball = mass * tube / (tube + ball), mass * ball / (tube + ball)
    along = tube * radius**2 / 2.0 + ball * 2.0 * radius**2 / 5.0
    # The two half balls sit at the ends of the tube, with their centres of mass 3/8 of the radius further out.
    across = tube * (radius**2 / 4.0 + length**2 / 12.0)
    across += ball * (2.0 * radius**2 / 5.0 + length**2 / 4.0 + 3.0 * length * radius / 8.0)
    tensor = across * np.eye(3) + (along - across) * np.outer(axis, axis)
    return tuple(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist())


FACTS = with_touch_sensors(load_facts("allegro_hand").with_variant("isaac_gym_reference")).without_contact(
    ("palm_link", "thumb_link_1"), ("palm_link", "thumb_link_2")
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
