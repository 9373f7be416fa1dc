"""Compare nested states bit by bit."""

from typing import Any

import numpy as np
import torch


def assert_same(first: Any, second: Any, path: str = "") -> None:
    """Check that two nested structures hold the same values, tensors to the last bit."""
    assert type(first) is type(second) or isinstance(first, torch.Tensor), path
    if isinstance(first, dict):
        assert first.keys() == second.keys(), f"{path}: {first.keys() ^ second.keys()}"
        for key in first:
            assert_same(first[key], second[key], f"{path}.{key}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), path
        for index, (a, b) in enumerate(zip(first, second, strict=True)):
            assert_same(a, b, f"{path}[{index}]")
    elif isinstance(first, np.ndarray):
        assert np.array_equal(first, second), path
    elif isinstance(first, torch.Tensor):
        same = torch.equal(first, second) or (
            (first.isnan() == second.isnan()).all() and torch.equal(first.nan_to_num(), second.nan_to_num())
        )
        assert same, f"{path} differs by {(first.double() - second.double()).abs().max()}"
    else:
        assert first == second, f"{path}: {first} != {second}"
