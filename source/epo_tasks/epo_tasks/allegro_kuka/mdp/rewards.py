"""Rewards of one step, unweighted. All read what :class:`~.goal.GoalCommand` took in."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .goal import GoalCommand


def tracked(env: ManagerBasedRLEnv) -> GoalCommand:
    """Return the goal with this step taken in."""
    goal = env.command_manager.get_term("goal")
    assert isinstance(goal, GoalCommand)
    return goal.track()


def reaching(env: ManagerBasedRLEnv, until_lifted: bool) -> torch.Tensor:
    """Return by how much fingertips came nearer to the object than ever since it was placed [m], summed."""
    goal = tracked(env)
    return goal.reach_gain * ~goal.lifted if until_lifted else goal.reach_gain


def lifting(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the height of an object that is not lifted yet [m]."""
    goal = tracked(env)
    return goal.height.clamp(0.0, 0.5) * ~goal.lifted


def lifted(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return 1 in the step in which the object is lifted."""
    return tracked(env).just_lifted.float()


def progress(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return by how much a lifted object came nearer to the goal than ever [m]."""
    goal = tracked(env)
    return goal.progress * goal.lifted


def near_goal(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return this step's share of a success."""
    goal = tracked(env)
    return goal.near.float() / goal.cfg.near_steps


def joint_speed(env: ManagerBasedRLEnv, asset_name: str, first: int, last: int) -> torch.Tensor:
    """Return the summed speed of the joints ``first`` to ``last - 1`` [rad/s]."""
    return env.scene[asset_name].data.joint_vel.torch[:, first:last].abs().sum(dim=-1)
