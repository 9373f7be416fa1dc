"""Rewards, ends and logs of the Franka cube tasks: cubes and hands are put where the specification has an answer."""

import math

import pytest
import torch

from support.envs import make_env
from support.franka import PUSH, STACK, TABLE_TOP, goal_of, judge, put

pytestmark = pytest.mark.integration

NUM = 8


@pytest.fixture
def push():
    with make_env(PUSH, "physics=ovphysx", num_envs=NUM) as env:
        yield env


@pytest.fixture
def stack():
    with make_env(STACK, "physics=ovphysx", num_envs=NUM) as env:
        yield env


def test_push_rewards_and_ends(push):
    """Distance, height above the table, step; reward, termination, truncation."""
    cases = [
        (0.1, 0.025, 50, 0.47681, False, False),
        (0.2, 0.025, 50, 0.07194, False, False),
        (0.0049, 0.025, 120, 720.0, True, False),
        (0.0051, 0.025, 120, 2.0 * (1.0 - math.tanh(0.051)), False, False),
        (0.1, 0.0901, 50, -3.80797, True, False),
        (0.1, 0.0899, 50, 0.47681, False, False),
        (0.1, 0.025, 299, -3.80797, False, True),
        (0.004, 0.025, 299, 4.0, True, False),
    ]
    env, goal = push, goal_of(push)
    env.reset()
    distance, height, steps, reward, terminated, truncated = (
        torch.tensor(column) for column in zip(*cases, strict=True)
    )
    angle = torch.linspace(0.0, 5.0, NUM)
    offset = torch.stack([distance * angle.cos(), distance * angle.sin(), TABLE_TOP + height - goal.goal_pos[:, 2]], 1)
    put(env, "cube", goal.goal_pos + offset)
    found = judge(env, steps)
    torch.testing.assert_close(found[0], reward, rtol=1e-3, atol=2e-4)
    assert found[1].tolist() == terminated.tolist()
    assert found[2].tolist() == truncated.tolist()
    env.reset()


STACK_CASES = [
    # place of the cube (None: far from the other), its height, distances of grip site and tips; reward, termination
    (False, 0.025, (0.1, 0.1, 0.1), 0.023841, False),
    (True, 0.095, (0.01, 0.03, 0.03), 0.1 + 1.5 + 2.0, False),
    (True, 0.20, (0.01, 0.03, 0.03), 2.01347, False),
    (True, 0.095, (0.05, 0.03, 0.03), 16.0, True),
    (True, 0.095, (0.039, 0.03, 0.03), 3.6, False),
    # on top, but 25 mm aside, and 25 mm too high
    ("aside", 0.095, (0.05, 0.05, 0.05), 0.1 * (1 - math.tanh(0.25)) + 1.5 + 2.0 * (1 - math.tanh(0.25)), False),
    (True, 0.120, (0.05, 0.05, 0.05), 0.1 * (1 - math.tanh(0.25)) + 1.5 + 2.0 * (1 - math.tanh(0.25)), False),
    # on the table, hand at the cube
    (False, 0.025, (0.0, 0.0, 0.0), 0.1, False),
]


def place_stack_cases(env, monkeypatch) -> None:
    goal = goal_of(env)
    env.reset()
    base = goal.goal_pos.clone()
    cube = base.clone()
    for row, (where, height, _, _, _) in enumerate(STACK_CASES):
        cube[row, 0] += {True: 0.0, False: 0.3, "aside": 0.025}[where]
        cube[row, 2] = TABLE_TOP + height
    put(env, "cube", cube)
    distances = torch.tensor([case[2] for case in STACK_CASES])
    direction = torch.nn.functional.normalize(torch.rand(NUM, 3, 3) - 0.5, dim=-1)
    points = cube.unsqueeze(1) + distances.unsqueeze(-1) * direction
    monkeypatch.setattr(goal.hand, "points", lambda: points)


def test_stack_rewards_and_ends(stack, monkeypatch):
    place_stack_cases(stack, monkeypatch)
    reward, terminated, truncated = judge(stack, torch.full((NUM,), 50))
    torch.testing.assert_close(reward, torch.tensor([case[3] for case in STACK_CASES]), rtol=1e-3, atol=1e-3)
    assert terminated.tolist() == [case[4] for case in STACK_CASES]
    assert not truncated.any()
    place_stack_cases(stack, monkeypatch)
    _, terminated, truncated = judge(stack, torch.full((NUM,), 299))
    assert truncated.tolist() == [not case[4] for case in STACK_CASES]
    assert terminated.tolist() == [case[4] for case in STACK_CASES]
    stack.reset()


def test_stacking_can_be_made_the_best_policy(monkeypatch):
    with make_env(STACK, "physics=ovphysx", "env.pay_remaining=true", num_envs=NUM) as env:
        place_stack_cases(env, monkeypatch)
        reward = judge(env, torch.full((NUM,), 50))[0]
        assert reward[3].item() == pytest.approx(16.0 + 3.6 * 250, rel=1e-4)
        assert reward[1].item() == pytest.approx(3.6, rel=1e-3)
        assert "pay_remaining" in env.cfg.note()


def test_an_idle_episode_lasts_299_steps_and_its_log_tells_of_it(push):
    env, goal = push, goal_of(push)
    env.reset()
    # out of the hand's way
    put(env, "cube", torch.tensor([0.24, 0.24, 1.05]).expand(NUM, 3))
    distance = (goal.goal_pos - goal.cube_pos)[:, :2].norm(dim=-1)
    total = torch.zeros(NUM)
    for step in range(1, 300):
        _, reward, terminated, truncated, extras = env.step(torch.zeros(NUM, 7))
        total += reward
        assert not terminated.any() and truncated.all() == (step == 299), step
    near = 1.0 - torch.tanh(10.0 * distance)
    torch.testing.assert_close(total, 298 * 2.0 * near - 5.0 * (1.0 - near), rtol=0.02, atol=0.05)
    log = extras["log"]
    assert log["Metrics/success_rate"] == 0.0 and log["Metrics/lifted"] == 0.0
    assert log["Metrics/steps_to_success"] == 299.0
    assert log["Metrics/final_distance"].item() == pytest.approx(distance.mean().item(), abs=1e-3)
    assert log["Metrics/episode_return"].item() == pytest.approx(total.mean().item(), rel=1e-3)
    assert (extras["last_episode"]["success_rate"] == 0.0).all()
