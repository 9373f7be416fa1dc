"""Key and door: the wall, the trap beside it, and the shortest way."""

import math

import pytest
import torch

from epo_lab.diagnostics.key_door import (
    DOOR,
    KEY,
    KEY_RADIUS,
    PAY_KEY,
    PAY_NEAR,
    PAY_REACH,
    ROOM,
    SPEED,
    TARGET,
    TARGET_RADIUS,
    KeyDoorEnv,
)

pytestmark = pytest.mark.unit
POST = (0.0, DOOR[1])


def towards(env, points):
    """Return the actions that lead to points, slower if they are closer than a step."""
    return (points - env.state["position"]) / SPEED


def shortest_way(env):
    """Touch the key where it costs least, round the post closely, and go into the target."""
    position, has_key = env.state["position"], env.state["key"]
    angles = torch.linspace(0.0, 2.0 * math.pi, 721)
    circle = torch.tensor(KEY) + 0.98 * KEY_RADIUS * torch.stack([angles.cos(), angles.sin()], dim=-1)
    cost = torch.cdist(position, circle) + (circle - torch.tensor(POST)).norm(dim=-1)
    touch = circle[cost.argmin(dim=-1)]
    # on the left the target can be seen through the door from below a line
    target = torch.tensor(TARGET).expand_as(position)
    x, y = position.unbind(dim=-1)
    seen_at = y - x * (TARGET[1] - y) / (TARGET[0] - x)
    open_way = (x >= 0.0) | (seen_at <= POST[1])
    beside_post = torch.tensor((0.0, POST[1] - 0.01)).expand_as(position)
    goal = torch.where(has_key.unsqueeze(-1), torch.where(open_way.unsqueeze(-1), target, beside_post), touch)
    # full steps, past the corners of the way too; only in the target they get shorter
    way = towards(env, goal)
    full = way / way.norm(dim=-1, keepdim=True)
    return torch.where((has_key & open_way).unsqueeze(-1), way, full)


def to_the_wall(env):
    return towards(env, torch.tensor((-0.001, TARGET[1])).expand_as(env.state["position"]))


def play(env, policy):
    """Return the scores and returns of one episode."""
    total = torch.zeros(env.num_envs)
    for _ in range(env.horizon):
        _, rewards, dones, extras = env.step(policy(env))
        total += rewards
    assert bool(dones.all())
    return extras["score"], total


def test_the_shortest_way_scores_one():
    """Steps end where they end, not on the corners of the way: that costs up to two of about 52."""
    scores, _ = play(KeyDoorEnv(1024, seed=3), shortest_way)
    assert float(scores.max()) <= 1.0
    assert float(scores.min()) > 0.94 and float(scores.mean()) > 0.96


def test_the_wall_beside_the_target_is_a_trap():
    scores, returns = play(KeyDoorEnv(1024, seed=3), to_the_wall)
    _, best = play(KeyDoorEnv(1024, seed=3), shortest_way)
    assert float(scores.max()) == 0.0
    assert 0.05 < float(returns.mean() / best.mean()) < 0.1
    env = KeyDoorEnv(2)
    env.state["position"] = torch.tensor([[-0.6, 0.6], [-0.4, 0.9]])
    _, rewards, _, _ = env.step(torch.tensor([[0.5, 0.0], [0.5, 0.0]]))
    expected = [PAY_NEAR * (1.0 - math.dist(place, TARGET) / PAY_REACH) for place in ((-0.5, 0.6), (-0.3, 0.9))]
    assert rewards.tolist() == pytest.approx(expected)


def test_random_actions_hardly_ever_get_there():
    torch.manual_seed(0)
    scores, _ = play(KeyDoorEnv(4096, seed=3), lambda env: torch.randn(env.num_envs, 2))
    assert float(scores.mean()) < 0.02


def test_the_best_stay_by_a_search_over_ways():
    """All touches of the key and all heights in the door, without knowing where a shortest way turns."""
    env = KeyDoorEnv(64, seed=5)
    angles = [math.radians(0.25 * n) for n in range(1440)]
    touches = [(KEY[0] + KEY_RADIUS * math.cos(a), KEY[1] + KEY_RADIUS * math.sin(a)) for a in angles]
    doors = [(0.0, DOOR[0] + n * (DOOR[1] - DOOR[0]) / 60) for n in range(61)]
    behind = {door: math.dist(door, TARGET) - TARGET_RADIUS for door in doors}
    rest = [min(math.dist(touch, door) + behind[door] for door in doors) for touch in touches]
    for place, best in zip(env.state["position"].tolist(), env.state["best_stay"].tolist(), strict=True):
        way = min(math.dist(place, touch) + after for touch, after in zip(touches, rest, strict=True))
        assert best in {env.horizon + 1 - math.ceil((way + slack) / SPEED) for slack in (-2e-4, 0.0)}


def test_nobody_passes_the_wall_without_the_key():
    torch.manual_seed(1)
    env = KeyDoorEnv(512, seed=1)
    for _ in range(400):
        env.state["key"][:] = False
        env.step(torch.randn(512, 2) + torch.tensor([0.5, 0.0]))
        assert bool((env.state["position"][:, 0] < 0.0).all())
        assert bool((env.state["position"].abs() <= ROOM).all())


def test_with_the_key_the_way_leads_through_the_door_only():
    torch.manual_seed(1)
    env, passed = KeyDoorEnv(512, seed=1), 0
    env.horizon = 10_000
    env.state["key"][:] = True
    for _ in range(400):
        before = env.state["position"].clone()
        actions = torch.randn(512, 2)
        env.step(actions)
        after = env.state["position"]
        step = SPEED * actions.clamp(-1.0, 1.0)
        step = step / (step.norm(dim=-1, keepdim=True) / SPEED).clamp(min=1.0)
        crossed = (before[:, 0] < 0.0) != (after[:, 0] < 0.0)
        for (x, y), (dx, dy) in zip(before[crossed].tolist(), step[crossed].tolist(), strict=True):
            # the room's own wall may have cut the step
            dx, dy = max(-ROOM, min(ROOM, x + dx)) - x, max(-ROOM, min(ROOM, y + dy)) - y
            assert DOOR[0] - 1e-5 <= y - x * dy / dx <= DOOR[1] + 1e-5
        passed += int(crossed.sum())
    assert passed > 100, "many passed"


def test_steps_are_as_long_in_all_directions():
    env = KeyDoorEnv(3)
    env.state["position"] = torch.tensor([[-1.0, 0.5]] * 3)
    env.step(torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.3, 0.4]]))
    moved = (env.state["position"] - torch.tensor([-1.0, 0.5])).norm(dim=-1)
    assert moved.tolist() == pytest.approx([SPEED, SPEED, 0.5 * SPEED])


def test_the_key_is_touched_in_passing_and_pays_once():
    env = KeyDoorEnv(2)
    beside = KEY[0] + KEY_RADIUS
    env.state["position"] = torch.tensor([[beside - 0.01, KEY[1] - 0.1], [beside + 0.01, KEY[1] - 0.1]])
    up = torch.tensor([[0.0, 1.0]] * 2)
    _, rewards, _, _ = env.step(up)
    assert env.state["key"].tolist() == [True, False]
    assert rewards.tolist() == pytest.approx([PAY_KEY, 0.0])
    _, rewards, _, _ = env.step(-up)
    assert rewards.tolist() == pytest.approx([0.0, 0.0])
    assert env.get_observations()["policy"][:, 2].tolist() == [1.0, 0.0]


def test_every_step_in_the_target_counts():
    env = KeyDoorEnv(1)
    env.state["position"], env.state["best_stay"] = torch.tensor([list(TARGET)]), torch.tensor([40.0])
    for _ in range(10):
        _, rewards, _, extras = env.step(torch.zeros(1, 2))
        assert rewards.item() == 1.0
    assert extras["score"].item() == pytest.approx(10 / 40)
