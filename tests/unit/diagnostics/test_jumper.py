"""The jumper: ballistics, levels, and the runner that reaches the highest."""

import math

import pytest
import torch

from epo_lab.diagnostics.jumper import (
    ACCELERATION,
    DT,
    FALL_COST,
    GROWTH,
    LONGEST_JUMP,
    RUN_UP,
    TAKE_OFF,
    TOP_LEVEL,
    TOP_SPEED,
    JumperEnv,
)

pytestmark = pytest.mark.unit


def runner(speed=TOP_SPEED, jump=1.0):
    """Return a policy that runs and jumps with the last step before the edge."""

    def policy(env):
        gain = DT * ACCELERATION
        drive = ((speed - env.state["speed"]) / gain).clamp(-1.0, 1.0)
        after = (env.state["speed"] + gain * drive).clamp(0.0, TOP_SPEED)
        last = env.state["edge"] < DT * after
        return torch.stack([drive, torch.where(last, jump, -1.0)], dim=-1)

    return policy


def play(env, policy):
    """Return the scores and returns of one episode."""
    total = torch.zeros(env.num_envs)
    for _ in range(env.horizon):
        _, rewards, dones, extras = env.step(policy(env))
        total += rewards
    assert bool(dones.all())
    return extras["score"], total


def placed(num_envs=1, **state):
    env = JumperEnv(num_envs)
    for name, value in state.items():
        env.state[name] = torch.as_tensor(value, dtype=env.state[name].dtype).expand(num_envs).clone()
    return env


def fly(env):
    """Let a jump end and return the rewards on the way."""
    paid = []
    while bool(env.state["flying"].any()):
        paid.append(env.step(torch.full((env.num_envs, 2), -1.0))[1])
    return paid


def landing_by_small_steps(edge, speed, rise, dt=1e-5):
    """Return where a jump ends, by integrating the equations of motion."""
    height = 0.0
    while True:
        height += dt * rise
        rise -= dt * 9.81
        edge -= dt * speed
        if height <= 0.0:
            return edge


def test_a_late_jump_at_full_speed_reaches_the_highest_level():
    scores, returns = play(JumperEnv(4096, seed=3), runner())
    assert bool((scores == 1.0).all())
    assert float(returns.min()) > 40.0, "nobody fell"


def test_half_the_speed_reaches_the_level_that_its_jumps_are_long_enough_for():
    scores, _ = play(JumperEnv(1024, seed=3), runner(speed=0.5 * TOP_SPEED))
    longest = 0.5 * LONGEST_JUMP
    least, most = (longest - 0.5 * TOP_SPEED * DT) // GROWTH, longest // GROWTH
    assert least == 4 and most == 5
    assert float(scores.max()) <= most / TOP_LEVEL
    assert float((scores * TOP_LEVEL >= least - 1).float().mean()) == 1.0


def test_random_actions_stay_low():
    torch.manual_seed(0)
    scores, _ = play(JumperEnv(4096, seed=3), lambda env: torch.randn(env.num_envs, 2))
    assert 0.0 < float(scores.mean()) < 0.35


def test_the_highest_level_is_the_widest_gap_that_is_safe():
    steps = torch.linspace(0.0, TOP_SPEED * DT - 1e-4, 50)
    for level, crossed in ((TOP_LEVEL - 1, 50), (TOP_LEVEL, 50)):
        env = placed(50, speed=TOP_SPEED, level=level, edge=0.1)
        env.state["edge"] = steps.clone()
        env.step(torch.ones(50, 2))
        fly(env)
        assert int((env.state["level"] == TOP_LEVEL).sum()) == crossed
    assert (TOP_LEVEL + 1) * GROWTH + TOP_SPEED * DT > LONGEST_JUMP >= TOP_LEVEL * GROWTH + TOP_SPEED * DT
    assert landing_by_small_steps(0.0, TOP_SPEED, TAKE_OFF) == pytest.approx(-LONGEST_JUMP, abs=1e-3)


@pytest.mark.parametrize(("speed", "jump"), [(2.5, 1.0), (1.0, 0.7), (2.0, 0.2), (1.5, 0.13), (0.3, 0.9)])
def test_jumps_end_where_gravity_says(speed, jump):
    far = 5.0
    env = placed(speed=speed, edge=far)
    env.step(torch.tensor([[0.0, jump]]))
    steps, heights = 1, [env.state["height"].item()]
    while bool(env.state["flying"]):
        env.step(torch.tensor([[1.0, 1.0]]))
        steps += 1
        heights.append(env.state["height"].item())
    assert env.state["edge"].item() == pytest.approx(landing_by_small_steps(far, speed, TAKE_OFF * jump), abs=1e-3)
    assert env.state["speed"].item() == pytest.approx(speed), "nobody accelerates in the air"
    assert steps == math.ceil(2.0 * TAKE_OFF * jump / 9.81 / DT)
    expected = [TAKE_OFF * jump * DT * n - 0.5 * 9.81 * (DT * n) ** 2 for n in range(1, steps)]
    assert heights[:-1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("landing", "level", "fell"),
    [(0.3, 4, False), (-0.2, 3, True), (-0.4, 4, True), (-0.62, 4, True), (-0.63, 5, False), (-1.0, 5, False)],
)
def test_levels_go_up_and_down(landing, level, fell):
    """The gap of level 4 is 0.625 wide: before it, before and behind its middle, just short, just over, far over."""
    env = placed(speed=2.0, edge=0.5, level=4)
    env.step(torch.tensor([[0.0, 0.9]]))
    env.state["landing"] = torch.tensor([landing])
    paid = fly(env)[-1].item()
    assert env.state["level"].item() == level
    assert paid == pytest.approx(-FALL_COST if fell else 2.0 / TOP_SPEED)
    assert env.state["speed"].item() == (0.0 if fell else 2.0)
    if level == 4 and not fell:
        assert env.state["edge"].item() == pytest.approx(landing)
    else:
        assert RUN_UP[0] <= env.state["edge"].item() <= RUN_UP[1]


def test_who_runs_into_a_gap_falls_however_narrow_it_is():
    env = placed(speed=TOP_SPEED, edge=0.01, level=0)
    _, rewards, _, _ = env.step(torch.tensor([[1.0, -1.0]]))
    assert rewards.item() == -FALL_COST and env.state["level"].item() == 0 and env.state["speed"].item() == 0.0
    env = placed(speed=TOP_SPEED, edge=0.01, level=1)
    env.step(torch.tensor([[1.0, -1.0]]))
    assert env.state["level"].item() == 0


def test_a_new_episode_begins_on_the_lowest_level():
    env = placed(8, level=5)
    env.episode_length_buf[:] = env.horizon - 1
    _, _, dones, extras = env.step(torch.full((8, 2), -1.0))
    assert bool(dones.all()) and extras["score"].tolist() == [5 / TOP_LEVEL] * 8
    assert env.state["level"].tolist() == [0] * 8
