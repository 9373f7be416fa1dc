"""Count torch operations: on a GPU each is a kernel that somebody has to launch, whatever the size of its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = {
    *("alias", "as_strided", "detach", "expand", "expand_as", "flatten", "is_same_size", "lift_fresh", "permute"),
    *(
        "_reshape_alias",
        "reshape",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
    ),
    *("_unsafe_view", "unsqueeze", "view"),
}
"""Operations that only look at a tensor in another way."""


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.overloadpacket._qualified_op_name.split("::")[-1] not in VIEWS
        return func(*args, **(kwargs or {}))


@contextmanager
def counted() -> Iterator[_Counter]:
    """Count the operations of the body."""
    with _Counter() as counter:
        yield counter


def count_operations(algorithm: Any, env: Any, num_steps: int) -> tuple[float, int]:
    """Return the operations of a step (acting and taking in what came of it) and of an update."""
    steps = 0
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(num_steps):
            with counted() as acting:
                actions = algorithm.act(obs)
            obs, rewards, dones, extras = env.step(actions)
            with counted() as taking_in:
                algorithm.process_env_step(obs, rewards, dones, extras)
            steps += acting.count + taking_in.count
    with counted() as update:
        with torch.inference_mode():
            algorithm.compute_returns(obs)
        algorithm.update()
    return steps / num_steps, update.count
