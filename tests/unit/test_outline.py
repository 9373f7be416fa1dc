"""The lines that show a goal."""

import math

import pytest
import torch

from epo_tasks.common.outline import box_outline

pytestmark = pytest.mark.unit


def test_a_box_has_four_edges_of_each_length_along_its_own_axes():
    half = math.radians(30.0) / 2.0
    quat = torch.tensor([[0.0, 0.0, math.sin(half), math.cos(half)]])
    lines = box_outline(torch.tensor([[1.0, 2.0, 3.0]]), quat, torch.tensor([[0.1, 0.2, 0.3]]))
    assert lines.shape == (1, 12, 2, 3)
    edges = lines[0, :, 0] - lines[0, :, 1]
    c, s = math.cos(math.radians(30.0)), math.sin(math.radians(30.0))
    for length, axis in ((0.1, (c, s, 0.0)), (0.2, (-s, c, 0.0)), (0.3, (0.0, 0.0, 1.0))):
        along = (edges @ torch.tensor(axis)).abs()
        assert torch.isclose(along, torch.tensor(length), atol=1e-5).sum() == 4
    torch.testing.assert_close(lines.mean(dim=(1, 2)), torch.tensor([[1.0, 2.0, 3.0]]))
