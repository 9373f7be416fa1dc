"""Short goals first, and longer ones as objects are lifted, in a real environment."""

import pytest
import torch

from support.envs import make_env
from support.kuka import goal_of, hold

pytestmark = pytest.mark.integration


def test_short_goals_come_first_and_longer_ones_as_objects_are_lifted(tmp_path):
    with make_env("Epo-Kuka-OneArm-Regrasp-v0", "env.goal_lengths=[5,9,400]", num_envs=8) as env:
        goal = goal_of(env)

        def ends(steps: int, *, lifted: int) -> list[int]:
            """Return the steps in which all episodes run out of time, while some objects count as lifted."""
            found = []
            for step in range(1, steps + 1):
                goal.ever_lifted[:lifted] = True
                _, _, _, truncated, extras = env.step(hold(env))
                if truncated.all():
                    found.append(step)
                    assert extras["log"]["Metrics/goal_length"] == goal.goal_length
            return found

        assert ends(15, lifted=2) == [4, 8, 12], "like the full length, which ends an episode of 400 after 399"
        # the 16th step is a look, and an end: a quarter of the objects is lifted, and it goes on as before
        assert ends(1, lifted=2) == [1] and goal.goal_length == 5
        assert ends(15, lifted=3) == [4, 8, 12]
        env.step(hold(env))
        assert goal.goal_length == 9
        assert ends(16, lifted=0) == [8, 16], "a stage does not come back"
        assert env.max_episode_length == 400

        torch.save(env.state_dict(), tmp_path / "state.pt")
        goal.goal_length = 5
        env.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert goal.goal_length == 9
