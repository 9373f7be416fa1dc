"""Drive the Allegro-Kuka tasks in tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def goal_of(env: Any) -> Any:
    """Return the goal term."""
    return env.command_manager.get_term("goal")


def hold(env: Any) -> torch.Tensor:
    """Return the action that keeps all joints where they are."""
    blocks = []
    for name in env.action_manager.active_terms:
        term = env.action_manager.get_term(name)
        if term.action_dim == 0:
            continue
        if name == "arm":
            blocks.append(torch.zeros(env.num_envs, 7))
            continue
        data = term._asset.data
        low, high = data.joint_pos_limits.torch[:, -term.action_dim :].unbind(dim=-1)
        blocks.append((2.0 * data.joint_pos.torch[:, -term.action_dim :] - high - low) / (high - low))
    return torch.cat(blocks, dim=-1)


def feed(env: Any, **measured: torch.Tensor) -> dict[str, torch.Tensor]:
    """Let the goal take in a step in which it measures these values; return what each reward term pays.

    Physics stands still: only the clock goes on.
    """
    goal = goal_of(env)
    for name, value in measured.items():
        getattr(goal, name).copy_(value)
    measure, goal.measure = goal.measure, lambda **_: goal
    try:
        env.common_step_counter += 1
        env.reward_manager.compute(env.step_dt)
    finally:
        goal.measure = measure
    paid = env.reward_manager._step_reward * env.step_dt
    return {name: paid[:, index] for index, name in enumerate(env.reward_manager.active_terms)}


def fills(drawn: torch.Tensor, low: Sequence[float], high: Sequence[float], *, mirrored: bool = False) -> None:
    """Assert that positions lie in a box and reach all of its sides; mirrored: in it or its mirror image alike."""
    if mirrored:
        assert abs((drawn[:, 0] > 0).float().mean().item() - 0.5) < 0.02
        drawn = torch.cat([drawn[:, :1].abs(), drawn[:, 1:]], dim=1)
    bottom, top = torch.tensor(low), torch.tensor(high)
    margin = 0.005 * (top - bottom)
    assert (drawn >= bottom - 1e-6).all() and (drawn <= top + 1e-6).all()
    assert (drawn.amin(0) <= bottom + margin).all() and (drawn.amax(0) >= top - margin).all()
    assert ((drawn.mean(0) - (bottom + top) / 2).abs() < 5 * margin).all(), "evenly"


def far_away(env: Any) -> dict[str, torch.Tensor]:
    """Return measured values of an object that lies on the table, far from hands and goal."""
    goal, num = goal_of(env), env.num_envs
    return {
        "object_pos": torch.tensor([0.0, 0.0, 0.555]).repeat(num, 1),
        "tip_distances": torch.ones_like(goal.tip_distances),
        "distance": torch.ones(num),
    }
