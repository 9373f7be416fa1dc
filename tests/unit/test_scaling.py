"""The cost of collectives, computed."""

import pytest
from benchmarks.scaling import (
    BETWEEN,
    INSIDE,
    START,
    Link,
    all_reduce_seconds,
    gradient_bytes,
    ring_seconds,
    tree_seconds,
)

pytestmark = pytest.mark.unit


def test_a_ring_sends_almost_everything_twice():
    link = Link(bandwidth=1e9, latency=0.0)
    assert ring_seconds(1e9, 2, link) == pytest.approx(1.0)
    assert ring_seconds(1e9, 1000, link) == pytest.approx(2.0 * 999 / 1000)
    assert ring_seconds(1e9, 1, link) == tree_seconds(1e9, 1, link) == 0.0


def test_small_messages_cost_latency_only():
    link = Link(bandwidth=1e30, latency=1e-6)
    assert ring_seconds(1.0, 1000, link) == pytest.approx(2 * 999e-6)
    assert tree_seconds(1.0, 1000, link) == pytest.approx(2 * 10 * 1e-6)


def test_nodes_exchange_their_share_only():
    size = 8e9
    inside, between = ring_seconds(size, 8, INSIDE), ring_seconds(size / 8, 8, BETWEEN)
    assert all_reduce_seconds(size, 64) == pytest.approx(START + inside + between, rel=0.01)
    assert all_reduce_seconds(0.0, 64) == pytest.approx(START + 2 * 3 * (INSIDE.latency + BETWEEN.latency)), (
        "two trees of 8"
    )


def test_an_iteration_reduces_a_gradient_a_mini_batch():
    assert gradient_bytes(1_000_000, 5, 4) == 80_000_000
