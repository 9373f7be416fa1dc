"""Start states of the Control Suite's tasks against MuJoCo's own contacts."""

import numpy as np
import pytest

from epo_tasks.humanoid.mdp.starts import draw_starts, draw_states, touching
from epo_tasks.robots.dmc_humanoid import DMC_FACTS
from support.control_suite import load, set_state

pytestmark = pytest.mark.unit

ORIGIN = np.array([0.0, 0.0, 1.5])


@pytest.fixture(scope="module")
def physics():
    return load("stand").physics


def contacts(physics, quat: np.ndarray, joints: np.ndarray) -> np.ndarray:
    touch = []
    for turn, pose in zip(quat, joints, strict=True):
        set_state(physics, ORIGIN, turn, pose)
        physics.after_reset()
        touch.append(physics.data.ncon > 0)
    return np.array(touch)


def test_states_that_touch_are_those_in_which_mujoco_finds_a_contact(physics):
    quat, joints = draw_states(DMC_FACTS, 1000, np.random.default_rng(0))
    ours, mujocos = touching(DMC_FACTS, quat, joints, 1.5), contacts(physics, quat, joints)
    assert 0.1 < mujocos.mean() < 0.5
    assert (ours == mujocos).mean() > 0.99, (ours.mean(), mujocos.mean(), (ours == mujocos).mean())


def test_drawn_starts_touch_nothing_and_fill_the_limits(physics):
    quat, joints = draw_starts(DMC_FACTS, 500, 1.5, seed=1)
    assert quat.shape == (500, 4) and joints.shape == (500, 21)
    assert contacts(physics, quat, joints).mean() < 0.01
    low, high = (np.array([getattr(joint, end) for joint in DMC_FACTS.moving_joints]) for end in ("lower", "upper"))
    share = (joints - low) / (high - low)
    assert (share >= 0.0).all() and (share <= 1.0).all() and (share.std(axis=0) > 0.2).all()
    # all rotations: no direction of the torso is preferred
    x, y = quat.T[:2]
    upright = 1 - 2 * (x * x + y * y)
    assert abs(upright.mean()) < 0.15 and upright.std() == pytest.approx(1 / np.sqrt(3), abs=0.06)


def test_limits_of_the_facts_are_the_suites(physics):
    low_high = physics.model.jnt_range[1:]
    np.testing.assert_allclose([(joint.lower, joint.upper) for joint in DMC_FACTS.moving_joints], low_high, atol=1e-5)
