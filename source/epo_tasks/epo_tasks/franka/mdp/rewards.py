"""Rewards, each before its weight."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .goal import CubeGoal, PushGoal, StackGoal
from .observations import goal_of


def tracked(env: ManagerBasedRLEnv) -> CubeGoal:
    """Return the goal with this step taken in."""
    return goal_of(env).track()


def _push(env: ManagerBasedRLEnv) -> PushGoal:
    goal = tracked(env)
    assert isinstance(goal, PushGoal)
    return goal


def _stack(env: ManagerBasedRLEnv) -> StackGoal:
    goal = tracked(env)
    assert isinstance(goal, StackGoal)
    return goal


def steps_left_at_success(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the steps that are left when the goal is reached, so that holding out never pays more than success."""
    goal = tracked(env)
    return goal.success * goal.steps_left


def push_progress(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return how near the cube is to the goal, 1 at best, in a step that ends nothing."""
    goal = _push(env)
    return ~(goal.success | goal.failed) * goal.near


def push_failure(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return how far the cube is from the goal, 1 at worst, where the episode ends without success."""
    goal = _push(env)
    return goal.failed * (1.0 - goal.near)


def stack_success(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return 1 where the cube stands on the other and is let go."""
    return _stack(env).success.float()


def stack_reaching(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the better of reaching and aligning, 1 at best, before success."""
    goal = _stack(env)
    return ~goal.success * torch.maximum(goal.reach, goal.align)


def stack_lifting(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return 1 where the cube is lifted, before success."""
    goal = _stack(env)
    return (~goal.success & goal.lifted).float()


def stack_aligning(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return how near the lifted cube is to its place on the other, 1 at best, before success."""
    goal = _stack(env)
    return ~goal.success * goal.align
