"""Rewards that are given in amounts per step."""

from collections.abc import Callable
from typing import Any

from isaaclab.managers import RewardTermCfg


def reward_per_step(func: Callable, value: float, step_dt: float, **params: Any) -> RewardTermCfg:
    """Return a reward of ``value`` a step for each unit of ``func``; Isaac Lab multiplies by the time step.

    Args:
        func: The term.
        value: Its weight in one step.
        step_dt: Time of a policy step [s].
        params: Arguments of the term.
    """
    return RewardTermCfg(func=func, weight=value / step_dt, params=params)
