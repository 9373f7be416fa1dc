"""Operational-space control: torques that give a hand the acceleration that a task asks for."""

from __future__ import annotations

import math

import torch

REGULARIZATION = 1.0e-7
"""Share of the mean mobility of the hand that is added in all directions, so that a stretched arm has one in each."""


def task_torque(
    jacobian: torch.Tensor, mass_matrix: torch.Tensor, acceleration: torch.Tensor, posture: torch.Tensor
) -> torch.Tensor:
    """Return the torques that give the hand an acceleration and, as far as that leaves freedom, the joints another.

    Computed in double precision: directions in which the hand hardly yields are differences of large numbers.

    Args:
        jacobian: J, hand velocity (linear, angular) per joint velocity. Shape is (num_envs, 6, num_joints).
        mass_matrix: M [kg m^2]. Shape is (num_envs, num_joints, num_joints).
        acceleration: Of the hand [m/s^2, rad/s^2]. Shape is (num_envs, 6).
        posture: Of the joints [rad/s^2]. Shape is (num_envs, num_joints).

    Returns:
        Torques [N m]. Shape is (num_envs, num_joints).
    """
    jac, mass = jacobian.double(), mass_matrix.double()
    posture_ = posture.double().unsqueeze(-1)

    # Mobility of the hand, the inverse of its inertia L: J M^-1 J^T
    factor = torch.linalg.cholesky_ex(mass).L
    half = torch.linalg.solve_triangular(factor, jac.mT, upper=False)
    mobility = half.mT @ half
    diagonal = mobility.diagonal(dim1=-2, dim2=-1)
    diagonal += REGULARIZATION * diagonal.mean(dim=-1, keepdim=True)

    # Task and null-space torque, J^T L a + (I - J^T L J M^-1) M n = J^T L (a - J n) + M n
    missing = acceleration.double().unsqueeze(-1) - jac @ posture_
    force = torch.cholesky_solve(missing, torch.linalg.cholesky_ex(mobility).L)
    return (jac.mT @ force + mass @ posture_).squeeze(-1).float()


def wrapped(angle: torch.Tensor) -> torch.Tensor:
    """Return angles brought into [-pi, pi) [rad]."""
    return torch.remainder(angle + math.pi, 2.0 * math.pi) - math.pi
