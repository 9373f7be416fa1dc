"""Terms of our tasks on a device that refuses strangers and counts who waits; the engine's place is taken by tensors.

Not here, and why:

- What happens once, at the start, and speaks to the engine: RandomizeFriction, RandomizeMotorStrength, and what
  RobotProperties reads of their draws.
- Terms that are Isaac Lab's own: their waits are not ours to mend.
- The looks at Kuka's curricula, every 16th step, which wait by design; no test step is one.
- A mask on its way to an asset is made an array of Warp's, which knows no virtual device: it stays a tensor here.
"""

import pytest
import torch
import warp as wp

import epo_tasks.common.host
from support.virtual_device import DEVICE, counted, enable
from support.virtual_scene import ENVS, VirtualTask

pytestmark = pytest.mark.unit

# Note: when the tests are collected, because autograd counts the devices once, at the first backward pass of a process
enable()

SENT = f"copy between devices {epo_tasks.common.host.__file__}"
"""A flag that is sent to the host and read later, when it has arrived: no wait on a GPU, whose memory is pinned."""

TERMS = {
    "Epo-Kuka-OneArm-Regrasp-v0": {"GoalCommand", "JointTargetSpeedAction", "RandomForce", "keypoints_from_goal"},
    "Epo-Kuka-OneArm-Throw-v0": {"GoalCommand", "JointTargetToLimits", "near_goal", "goal_time_out"},
    "Epo-Kuka-TwoArm-Reorient-v0": {"GoalCommand", "palm_states", "reset_object"},
    "Epo-A1-Parkour-v0": {"GoalsCommand", "HeightScan", "foot_edge", "terrain_levels", "TorqueChange", "tilted"},
    "Epo-AllegroHand-Reorient-v0": {"OrientationGoal", "reset_cube", "goal_difference", "orientation", "cube_away"},
    "Epo-ShadowHand-Reorient-v0": {"OrientationGoal", "fingertip_poses", "fingertip_velocities"},
    "Epo-Franka-CubePush-v0": {"PushGoal", "OperationalSpace", "Gripper", "push_progress", "grip_pose", "reset_arm"},
    "Epo-Franka-CubeStack-v0": {"StackGoal", "stack_reaching", "goal_from_cube"},
    "Epo-Humanoid-Run-v0": {"Progress", "dmc_score", "JointTorque"},
    "Epo-Humanoid-Stand-v0": {"ResetAnyhow", "extremities", "velocity", "center_of_mass_velocity"},
    "Epo-Anymal-Flat-v0": {"JointTarget", "reset_joints_around_default"},
}
"""Some of the terms of each task that have to be among those that are called."""


@pytest.mark.parametrize("task", TERMS)
def test_terms_take_nothing_from_the_host_and_do_not_wait(task, monkeypatch):
    monkeypatch.setattr(wp, "from_torch", lambda tensor, *_, **__: tensor)
    env = VirtualTask(task)
    ended = torch.tensor([1, ENVS - 1], dtype=torch.int32).to(DEVICE)
    with torch.inference_mode():
        # what is made when it is first used
        env.step()
        env.step(ended)
        for resets in (None, ended, None):
            env.move()
            with counted() as found:
                env.step(resets)
            assert not [wait for wait in found if not wait.startswith(SENT)], found
    assert env.called >= TERMS[task], TERMS[task] - env.called


def test_a_term_that_takes_from_the_host_is_refused_and_one_that_waits_is_counted():
    goal = VirtualTask("Epo-AllegroHand-Reorient-v0").commands["goal"]
    with pytest.raises(RuntimeError, match="one device"):
        goal.goal_pos + torch.ones(3)
    for waits in (lambda: bool(goal.success.any()), lambda: goal.goal_pos[[0, 1]], lambda: goal.goal_pos[goal.success]):
        with counted() as found:
            waits()
        assert sum(found.values()) == 1, found
