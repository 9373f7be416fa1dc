"""How many threads the physics engine gets, and what Warp compiles."""

import os

import pytest
import warp as wp

from epo_tasks.common.compat import num_threads

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("cores", "setting", "expected"),
    [(4, None, 4), (4, "1", 1), (4, "16", 4), (4, "2,1", 2), (4, "0", 4), (4, "many", 4), (1, None, 1)],
)
def test_threads_follow_cores_and_setting(monkeypatch, cores, setting, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if setting is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert num_threads() == expected


def test_tasks_do_not_compile_derivatives_of_kernels():
    @wp.kernel(module="unique")
    def double(values: wp.array(dtype=float)):
        values[wp.tid()] = 2.0 * values[wp.tid()]

    assert not double.module.options["enable_backward"]
