"""Scripted hands show on both engines that cubes can be grasped, pushed and stacked, and what that returns."""

import pytest

from support.envs import make_env
from support.franka import PUSH, STACK, follow

pytestmark = pytest.mark.integration

NEWTON = pytest.param("newton_mjwarp", 4, marks=pytest.mark.slow)
SIZES = [("ovphysx", 20), NEWTON]


def most(count: int) -> int:
    """Return how many of so many starts must come out well."""
    return count - 1


@pytest.mark.parametrize(("engine", "num"), [("ovphysx", 20), ("newton_mjwarp", 4)])
def test_a_cube_is_slid_onto_the_goal(engine, num):
    with make_env(PUSH, f"physics={engine}", num_envs=num) as env:
        outcome = follow(env, "push")
    assert outcome.succeeded.sum() >= most(num)
    returns = outcome.returns[outcome.succeeded]
    assert returns.min() > 600 and returns.max() < 1196, returns


@pytest.mark.parametrize(("engine", "num"), [("ovphysx", 20), ("newton_mjwarp", 4)])
def test_a_cube_is_stacked_and_let_go_which_returns_little(engine, num):
    with make_env(STACK, f"physics={engine}", num_envs=num) as env:
        outcome = follow(env, "stack")
    assert outcome.succeeded.sum() >= most(num)
    assert (outcome.returns[outcome.succeeded] < 300).all(), outcome.returns


@pytest.mark.parametrize(("engine", "num"), SIZES)
def test_to_hold_a_cube_over_the_other_returns_more_and_is_no_success(engine, num):
    with make_env(STACK, f"physics={engine}", num_envs=num) as env:
        outcome = follow(env, "hold")
    assert not outcome.succeeded.any()
    assert (outcome.returns > 600).sum() >= most(num), outcome.returns


@pytest.mark.parametrize(("engine", "num"), SIZES)
def test_a_lifted_cube_is_held_for_seconds_between_fingers_as_far_apart_as_its_edge(engine, num):
    with make_env(STACK, f"physics={engine}", num_envs=num) as env:
        outcome = follow(env, "lift")
    assert outcome.held.sum() >= most(num)
    width = outcome.width[outcome.held]
    assert ((width > 0.048) & (width < 0.052)).sum() >= most(num), width
