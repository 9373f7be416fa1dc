"""The table of observations and actions says what the environments say."""

import json

import pytest

from epo_tasks.registry import TASKS
from support.dimensions import dimensions, of_env
from support.envs import make_env

pytestmark = pytest.mark.integration

QUICK = "Epo-Anymal-Flat-v0"


def test_every_task_has_a_row():
    assert sorted(dimensions()) == sorted(TASKS)


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=() if task == QUICK else pytest.mark.slow) for task in TASKS]
)
def test_the_environment_is_as_large_as_the_table_says(task):
    with make_env(task, num_envs=2) as env:
        found = of_env(env)
    assert dimensions().get(task) == found, f"tests/support/dimensions.json: {json.dumps({task: found})}"
