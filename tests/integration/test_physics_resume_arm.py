"""An arm with its goal, targets and object goes on where it was, and every part of that is needed."""

import pytest
import torch

from support.continuation import SAME_ORDER, Continuation, same
from support.envs import make_env

pytestmark = pytest.mark.integration

ENVS = 8


@pytest.fixture(scope="module")
def arm():
    with make_env("Epo-Kuka-OneArm-Regrasp-v0", "physics=ovphysx", SAME_ORDER, num_envs=ENVS) as env:
        yield Continuation(env)


def test_an_arm_goes_on_to_the_last_bit(arm):
    assert same(arm.run, arm.restored())


@pytest.mark.parametrize("part", ["goal/goal_keypoints", "goal/goal_steps", "goal/best_distance", "arm/_targets"])
def test_an_arm_needs(arm, part):
    assert not same(arm.run, arm.restored(part))


def test_parameters_that_an_episode_drew_come_back(arm):
    robot = arm.env.scene["robot"]
    drawn = arm.state["parameters"]["robot"]["joint_stiffness"]
    robot.write_joint_stiffness_to_sim_index(stiffness=2.0 * drawn)
    assert same(arm.run, arm.restored())
    assert torch.equal(robot.data.joint_stiffness.torch, drawn)
