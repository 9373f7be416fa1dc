"""End episodes before their time."""

from __future__ import annotations

from typing import Any

import torch


def end_episodes(env: Any, columns: torch.Tensor) -> None:
    """Let the episodes of some environments end with the next step.

    Args:
        env: The vector environment. One whose episodes do not end by ``episode_length_buf`` has a method
            ``end_episodes(columns)`` of its own.
        columns: Indices of the environments.
    """
    inner = getattr(env, "unwrapped", env)
    if hasattr(inner, "end_episodes"):
        inner.end_episodes(columns)
    else:
        env.episode_length_buf[columns.to(env.episode_length_buf.device)] = int(env.max_episode_length)
