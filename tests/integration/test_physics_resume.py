"""Simulated tasks go on in the middle of their episodes, and every part of their state is needed for that."""

import pytest
import torch
from benchmarks.resume import measure_resume

from epo_lab.runner.physics import misfit, set_physics_state
from support.continuation import LAST_STEPS, SAME_ORDER, STEPS, Continuation, same
from support.envs import make_env

pytestmark = pytest.mark.integration

ENVS = 8


@pytest.fixture(scope="module")
def walker():
    with make_env("Epo-A1-Flat-v0", "physics=ovphysx", SAME_ORDER, num_envs=ENVS) as env:
        yield Continuation(env)


def test_a_walker_goes_on_to_the_last_bit_over_the_end_of_episodes(walker):
    assert walker.run.ends[LAST_STEPS - 1, :2].all() and walker.run.ends[:, 2:].sum() < ENVS * STEPS
    assert same(walker.run, walker.restored())


@pytest.mark.parametrize(
    "part", ["episode_length_buf", "vel_command_b", "action_manager/_action", "_current_air_time", "_joint_acc"]
)
def test_a_walker_needs(walker, part):
    assert not same(walker.run, walker.restored(part))


def test_a_walker_needs_its_velocities(walker):
    robot = walker.state["scene"]["articulation"]["robot"]
    still = {**robot, "joint_velocity": torch.zeros_like(robot["joint_velocity"])}
    scene = {**walker.state["scene"], "articulation": {"robot": still}}
    assert not same(walker.run, walker.restored(scene=scene))


def test_a_state_of_other_environments_is_named(walker):
    env, state = walker.env, walker.state
    assert misfit(env, state) == ""
    assert "with 4 environments, and now there are 8" in misfit(env, {**state, "num_envs": 4})
    assert "saved with Other" in misfit(env, {**state, "engine": "Other"})
    strange = {**state["leaves"], "env/command_manager/_terms/gone/goal": torch.zeros(ENVS)}
    assert "no place for env/command_manager/_terms/gone/goal" in set_physics_state(env, {**state, "leaves": strange})


FAMILIES = (
    "Epo-Kuka-OneArm-Regrasp-v0",
    "Epo-A1-Parkour-v0",
    "Epo-A1-Flat-v0",
    "Epo-AllegroHand-Reorient-v0",
    "Epo-Franka-CubePush-v0",
    "Epo-Humanoid-Run-v0",
    "Epo-Anymal-Flat-v0",
)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("task", FAMILIES)
def test_a_task_goes_on_to_the_last_bit_in_another_process(task):
    row = measure_resume(task, "ovphysx", ENVS, 60, 100, 0, [SAME_ORDER])
    found = row["resumed"]
    assert found["at_once"] == found["step_1"] == found["step_10"] == found["step_100"] == 0.0, found
    assert found["same_ends"] == 1.0 and row["anew"]["typical"] > 0.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", ["Epo-Anymal-Flat-v0", "Epo-Kuka-OneArm-Regrasp-v0"])
def test_newton_goes_on_to_the_last_bit_in_another_process(task):
    found = measure_resume(task, "newton_mjwarp", 4, 30, 100, 0, [])["resumed"]
    assert found["at_once"] == found["step_1"] == found["step_10"] == found["step_100"] == 0.0, found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_without_a_fixed_order_of_contacts_the_first_step_is_still_the_same():
    found = measure_resume("Epo-Anymal-Flat-v0", "ovphysx", 16, 60, 100, 0, [])["resumed"]
    assert found["at_once"] == found["step_1"] == 0.0, found
