"""The robots in another library, to check numbers against."""

import numpy as np
import pinocchio

from epo_tasks.robots.facts import RobotFacts

MOTIONS = {"revolute": pinocchio.JointModelRevoluteUnaligned, "prismatic": pinocchio.JointModelPrismaticUnaligned}


def pinocchio_model(facts: RobotFacts) -> pinocchio.Model:
    """Build the robot in another library, from the same facts."""
    model = pinocchio.Model()
    ids = {facts.root: 0}
    placements = {facts.root: pinocchio.SE3.Identity()}

    def add_body(name: str, joint_id: int, placement: pinocchio.SE3) -> None:
        link = facts.link(name)
        inertia = pinocchio.Inertia(link.mass, np.array(link.com), link.inertia_matrix)
        model.appendBodyToJoint(joint_id, inertia, placement)
        model.addFrame(pinocchio.Frame(name, joint_id, placement, pinocchio.FrameType.BODY))

    add_body(facts.root, 0, pinocchio.SE3.Identity())
    for joint in facts.joints:
        offset = pinocchio.SE3(pinocchio.rpy.rpyToMatrix(*joint.rpy), np.array(joint.xyz))
        origin = placements[joint.parent] * offset
        if joint.type == "fixed":
            ids[joint.child], placements[joint.child] = ids[joint.parent], origin
        else:
            motion = MOTIONS[joint.type](np.array(joint.axis))
            ids[joint.child] = model.addJoint(ids[joint.parent], motion, origin, joint.name)
            placements[joint.child] = pinocchio.SE3.Identity()
        add_body(joint.child, ids[joint.child], placements[joint.child])
    return model
