"""What counts as deep in the table or in an arm, and as having passed through it."""

from types import SimpleNamespace

import pytest
import torch
from benchmarks.kuka_stability import ArmWatch, TableWatch
from isaaclab.utils.math import quat_from_matrix

from epo_tasks.robots.kuka_allegro import FACTS

pytestmark = pytest.mark.unit

ON, IN, UNDER = (0.0, 0.0, 0.56), (0.0, 0.0, 0.40), (0.0, 0.0, 0.20)
BESIDE, BESIDE_BELOW = (0.3, 0.0, 0.56), (0.3, 0.0, 0.40)


@pytest.mark.parametrize(
    ("path", "inside", "through"),
    [
        ([ON, ON], 0, 0),
        ([ON, IN, IN, ON], 2, 0),  # pressed in, pushed out
        ([ON, IN, UNDER], 1, 1),
        ([ON, IN, BESIDE_BELOW], 1, 1),  # out at a side
        ([ON, UNDER, UNDER], 0, 1),  # within a step
        ([ON, BESIDE, BESIDE_BELOW], 0, 0),  # pushed off
        ([BESIDE_BELOW, UNDER], 0, 0),  # flew under it
        ([ON, (0.2, 0.0, 0.525)], 0, 0),  # lies flat
    ],
)
def test_paths(path, inside, through):
    watch = TableWatch(1, (0.2375, 0.2))
    no = torch.tensor([False])
    looks = [watch.look(torch.tensor([place]), no, no) for place in path]
    assert (sum(int(look[0]) for look in looks), sum(int(look[1]) for look in looks)) == (inside, through)


@pytest.mark.parametrize(("dropped", "through"), [(True, 1), (False, 0)])
def test_end_of_an_episode(dropped, through):
    watch = TableWatch(1, (0.2375, 0.2))
    no, yes = torch.tensor([False]), torch.tensor([True])
    watch.look(torch.tensor([IN]), no, no)
    # the place is already that of the next episode
    assert int(watch.look(torch.tensor([ON]), yes, torch.tensor([dropped]))[1]) == through


def arm_at(**joints):
    """Return the links of an arm, where its joints put them."""
    poses = FACTS.link_poses(joints)
    rows = [
        torch.cat([torch.tensor(place), quat_from_matrix(torch.tensor(turned).unsqueeze(0))[0]]).float()
        for turned, place in poses.values()
    ]
    pose = SimpleNamespace(torch=torch.stack(rows).unsqueeze(0))
    return SimpleNamespace(body_names=list(poses), data=SimpleNamespace(body_link_pose_w=pose))


def beside_forearm(distance):
    """Return a point beside the middle of a link that stands upright when all joints are at zero."""
    rotation, place = FACTS.link_poses()["iiwa7_link_4"]
    shape = next(link for link in FACTS.links if link.name == "iiwa7_link_4").shapes[0]
    middle = place + rotation @ shape.xyz
    return torch.tensor(middle + [distance, 0.0, 0.0]).float().unsqueeze(0)


@pytest.mark.parametrize(
    ("path", "inside", "through"),
    [
        ([0.3, 0.25], 0, 0),  # stays on its side
        ([0.3, -0.3], 0, 1),  # within a step
        ([0.3, 0.0, -0.3], 1, 0),  # seen inside, and counted as such
        ([0.3, 0.0, 0.3], 1, 0),  # pressed in, pushed out
    ],
)
def test_paths_past_an_arm(path, inside, through):
    watch = ArmWatch(arm_at())
    looks = [watch.look(beside_forearm(distance)) for distance in path]
    assert (sum(int(look[0]) for look in looks), sum(int(look[1]) for look in looks)) == (inside, through)


def test_an_arm_that_sweeps_over_an_object():
    object_at = beside_forearm(0.2)
    arm = arm_at(iiwa7_joint_2=-0.6)
    watch = ArmWatch(arm)
    watch.look(object_at)
    arm.data = arm_at(iiwa7_joint_2=1.2).data
    inside, through = watch.look(object_at)
    assert through.item() and not inside.item()
    # and back to where it came from, past another object, which it does not meet
    elsewhere = ArmWatch(arm)
    elsewhere.look(-object_at)
    arm.data = arm_at(iiwa7_joint_2=0.9).data
    assert not elsewhere.look(-object_at)[1].item()
