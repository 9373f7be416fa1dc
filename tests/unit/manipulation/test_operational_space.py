"""Torques of operational-space control against the facts' numbers, the formula in numpy and Isaac Lab's controller."""

import math

import numpy as np
import pinocchio
import pytest
import torch
from isaaclab.controllers import OperationalSpaceController, OperationalSpaceControllerCfg

from epo_tasks.franka.mdp.control import task_torque, wrapped
from epo_tasks.robots.franka_panda import ARM_JOINTS, FACTS
from support.pinocchio_model import pinocchio_model

pytestmark = pytest.mark.unit

CHECKS = FACTS.extras["dynamics_checks"]
DEFAULT = FACTS.extras["default_joint_pos"]
AXES = {"x": (0, 1.0), "y": (1, 1.0), "minus_z": (2, -1.0), "rot_z": (5, 1.0)}
SCALE = np.array([0.1] * 3 + [0.5] * 3)


def arm_dynamics(pose: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the Jacobian of the hand's origin and the arm's block of the mass matrix, from pinocchio."""
    model = pinocchio_model(FACTS)
    data = model.createData()
    q = np.array([pose[name] for name in model.names[1:]])
    columns = [model.joints[model.getJointId(name)].idx_v for name in ARM_JOINTS]
    mass = pinocchio.crba(model, data, q)
    mass = np.triu(mass) + np.triu(mass, 1).T
    frame = model.getFrameId("panda_hand")
    pinocchio.computeJointJacobians(model, data, q)
    pinocchio.framesForwardKinematics(model, data, q)
    jacobian = pinocchio.getFrameJacobian(model, data, frame, pinocchio.LOCAL_WORLD_ALIGNED)
    return jacobian[:, columns], mass[np.ix_(columns, columns)]


def law(jacobian: np.ndarray, mass: np.ndarray, acceleration: np.ndarray, posture: np.ndarray) -> np.ndarray:
    """The control law as the specification writes it, with inverses."""
    inverse = np.linalg.inv(mass)
    inertia = np.linalg.inv(jacobian @ inverse @ jacobian.T)
    null_space = np.eye(7) - jacobian.T @ inertia @ jacobian @ inverse
    return jacobian.T @ inertia @ acceleration + null_space @ mass @ posture


def torque_of(jacobian, mass, acceleration, posture) -> np.ndarray:
    values = (
        torch.tensor(np.array(value), dtype=torch.float32)[None] for value in (jacobian, mass, acceleration, posture)
    )
    return task_torque(*values)[0].numpy()


def test_mass_matrix_and_jacobian_of_the_facts_are_pinocchios():
    jacobian, mass = arm_dynamics(DEFAULT)
    np.testing.assert_allclose(mass, CHECKS["mass_matrix"], rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(jacobian, CHECKS["hand_jacobian"], rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("axis", AXES)
def test_torques_of_a_full_action_at_rest(axis):
    jacobian, mass = arm_dynamics(DEFAULT)
    index, sign = AXES[axis]
    acceleration = np.zeros(6)
    acceleration[index] = 150.0 * SCALE[index] * sign
    torque = torque_of(jacobian, mass, acceleration, np.zeros(7))
    expected = np.array(CHECKS["osc_torque"][axis])
    np.testing.assert_allclose(torque, expected, rtol=0.005, atol=0.005 * np.abs(expected).max())
    # M^-1 u is the joints' acceleration, and J M^-1 u the hand's
    np.testing.assert_allclose(jacobian @ np.linalg.solve(mass, torque), acceleration, atol=2e-3)


def test_without_command_only_the_posture_is_left_and_the_hand_stays():
    pose = FACTS.extras["fk_checks"]["arbitrary_at_origin"]["joint_pos"]
    jacobian, mass = arm_dynamics(pose)
    rest = torch.tensor([DEFAULT[name] - pose[name] for name in ARM_JOINTS])
    posture = 10.0 * wrapped(rest).numpy()
    torque = torque_of(jacobian, mass, np.zeros(6), posture)
    expected = CHECKS["arbitrary_pose_osc_torque"]["no_command"]
    np.testing.assert_allclose(torque, expected, atol=2e-3)
    np.testing.assert_allclose(jacobian @ np.linalg.solve(mass, torque), np.zeros(6), atol=1e-3)
    np.testing.assert_allclose(torque_of(jacobian, mass, np.zeros(6), np.zeros(7)), np.zeros(7))


def test_any_state_gives_the_torques_of_the_formula():
    rng = np.random.default_rng(0)
    for _ in range(20):
        pose = {name: DEFAULT[name] + rng.uniform(-0.6, 0.6) for name in ARM_JOINTS} | {
            name: 0.02 for name in DEFAULT if "finger" in name
        }
        jacobian, mass = arm_dynamics(pose)
        acceleration, posture = rng.normal(size=6) * 20.0, rng.normal(size=7) * 5.0
        expected = law(jacobian, mass, acceleration, posture)
        np.testing.assert_allclose(
            torque_of(jacobian, mass, acceleration, posture), expected, atol=2e-3 * np.abs(expected).max()
        )


def test_a_stretched_arm_has_finite_torques():
    pose = dict.fromkeys(ARM_JOINTS, 0.0) | {name: 0.0 for name in DEFAULT if "finger" in name}
    jacobian, mass = arm_dynamics(pose)
    assert np.linalg.matrix_rank(jacobian) < 6
    torque = torque_of(jacobian, mass, np.array([15.0, 0, 0, 0, 0, 0]), np.zeros(7))
    assert np.isfinite(torque).all()


def test_isaac_labs_controller_gives_the_same_torques_in_the_first_physics_step():
    rng = np.random.default_rng(1)
    pose = {name: DEFAULT[name] + rng.uniform(-0.25, 0.25) for name in ARM_JOINTS} | {
        name: 0.035 for name in DEFAULT if "finger" in name
    }
    jacobian, mass = arm_dynamics(pose)
    velocity = rng.normal(size=7) * 0.3
    command = rng.uniform(-1.0, 1.0, size=6) * SCALE
    stock = OperationalSpaceController(
        OperationalSpaceControllerCfg(
            target_types=["pose_rel"],
            inertial_dynamics_decoupling=True,
            gravity_compensation=False,
            motion_stiffness_task=150.0,
            motion_damping_ratio_task=1.0,
            nullspace_control="position",
            nullspace_stiffness=10.0,
            nullspace_damping_ratio=1.0,
        ),
        num_envs=1,
        device="cpu",
    )

    def batch(value) -> torch.Tensor:
        return torch.tensor(np.array(value), dtype=torch.float32)[None]

    hand_pose = batch([0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
    stock.set_command(batch(command), current_ee_pose_b=hand_pose)
    angles, rest = ([values[name] for name in ARM_JOINTS] for values in (pose, DEFAULT))
    expected = stock.compute(
        jacobian_b=batch(jacobian),
        current_ee_pose_b=hand_pose,
        current_ee_vel_b=batch(jacobian @ velocity),
        mass_matrix=batch(mass),
        current_joint_pos=batch(angles),
        current_joint_vel=batch(velocity),
        nullspace_joint_pos_target=batch(rest),
    )[0].numpy()
    acceleration = 150.0 * command - 2.0 * math.sqrt(150.0) * jacobian @ velocity
    posture = 10.0 * (np.array(rest) - angles) - 2.0 * math.sqrt(10.0) * velocity
    torque = torque_of(jacobian, mass, acceleration, posture)
    np.testing.assert_allclose(torque, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("angle", "expected"), [(3.5, 3.5 - 2 * math.pi), (-3.5, 2 * math.pi - 3.5), (1.0, 1.0)])
def test_angles_are_wrapped_into_one_turn(angle, expected):
    assert wrapped(torch.tensor(angle)).item() == pytest.approx(expected, abs=1e-6)
