"""What a population costs in operations, next to rsl_rl's PPO; on a GPU each is a kernel to launch."""

import pytest
from benchmarks.algorithm import LSTM, MLP, STEPS, RandomEnv, make_algorithm
from benchmarks.operations import count_operations

pytestmark = pytest.mark.unit

MOST = 1.3
"""Largest ratio of operations that we accept."""


@pytest.mark.parametrize("model", [MLP, LSTM])
def test_a_population_needs_few_operations_more(model):
    env = RandomEnv(32, "cpu")
    alone, population = [count_operations(make_algorithm(env, model, k, "cpu"), env, STEPS) for k in (1, 8)]
    for name, one, many in zip(("step", "update"), alone, population, strict=True):
        assert many / one <= MOST, f"{name}: {many} operations, PPO {one}"
    assert population[0] > alone[0], "genes are not for nothing"
