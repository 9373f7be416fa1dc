"""Where the cubes of the Franka tasks start."""

import numpy as np
import pytest
import torch

from epo_tasks.franka.mdp.goal import closeness, draw_places

pytestmark = pytest.mark.unit


def by_rejection(count: int, least: float) -> np.ndarray:
    """Return distances of pairs that are drawn one after the other, the second again until it is far enough."""
    rng = np.random.default_rng(0)
    distances = []
    for _ in range(count):
        first = rng.uniform(-0.25, 0.25, 2)
        while True:
            second = rng.uniform(-0.25, 0.25, 2)
            if np.linalg.norm(second - first) >= least:
                break
        distances.append(np.linalg.norm(second - first))
    return np.array(distances)


@pytest.mark.parametrize(("edges", "mean"), [(0.10, 0.299), (0.12, 0.312)])
def test_cubes_are_apart_as_if_drawn_again_until_they_are(edges, mean):
    torch.manual_seed(0)
    least = 2.0**0.5 * edges
    goal, cube = draw_places(100_000, 0.25, least, "cpu")
    distance = (goal - cube).norm(dim=-1)
    assert distance.min() >= least
    assert distance.mean().item() == pytest.approx(mean, abs=0.003)
    assert torch.cat([goal, cube]).abs().max() <= 0.25
    slow = by_rejection(20_000, least)
    quantiles = torch.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(distance.quantile(quantiles), np.quantile(slow, quantiles), atol=0.004)


@pytest.mark.parametrize(("distance", "expected"), [(0.0, 1.0), (0.1, 0.238406), (0.2, 0.035972)])
def test_closeness(distance, expected):
    assert closeness(torch.tensor(distance)).item() == pytest.approx(expected, abs=1e-6)


def test_a_robot_that_never_touches_the_cube_returns_about_6():
    """298 steps of 2 (1 - tanh 10 d), and -5 tanh 10 d in the last."""
    torch.manual_seed(1)
    goal, cube = draw_places(100_000, 0.25, 2.0**0.5 * 0.1, "cpu")
    near = closeness((goal - cube).norm(dim=-1))
    assert (2.0 * near).max() < 0.2233
    assert (298 * 2.0 * near - 5.0 * (1.0 - near)).mean().item() == pytest.approx(6.3, abs=0.5)
