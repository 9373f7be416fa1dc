"""The diagnostics: known optima, what naive policies reach, exact resumption, speed."""

import time

import pytest
import torch

from epo_lab.diagnostics.cycle import STATIONS, CycleEnv
from epo_lab.diagnostics.cyclic_mdp import CLOCKWISE, CyclicMdpEnv
from epo_lab.diagnostics.deceptive import BASINS, BEST, SPEED, DeceptiveEnv
from epo_lab.diagnostics.jumper import JumperEnv
from epo_lab.diagnostics.key_door import KeyDoorEnv
from epo_lab.diagnostics.memory import MemoryEnv
from epo_lab.diagnostics.pick_place import PickPlaceEnv
from epo_lab.diagnostics.smooth import DT, SmoothEnv

pytestmark = pytest.mark.unit

ENVS = (SmoothEnv, DeceptiveEnv, CycleEnv, MemoryEnv, CyclicMdpEnv, PickPlaceEnv, KeyDoorEnv, JumperEnv)


def mean_score(env, policy):
    """Return the mean score of one episode of every environment."""
    torch.manual_seed(0)
    for _ in range(env.horizon):
        _, _, dones, extras = env.step(policy(env))
    assert bool(dones.all())
    return float(extras["score"].mean())


def random_actions(env):
    return torch.randn(env.num_envs, env.num_actions)


def lqr(env):
    gain = env.gains[int(env.episode_length_buf[0])].float()
    return -(env.state["x"] @ gain.T)


def walk_to(basin):
    def policy(env):
        way = (env.centers[basin] - env.state["position"]) / SPEED
        return way / way.abs().amax(dim=-1, keepdim=True).clamp(min=1.0)

    return policy


def go_round(env):
    return env.directions[env.state["station"]]


def remember(env):
    return env.state["cue"]


def clockwise(env):
    return torch.tensor([0.1, 3.0, 2.0]).expand(env.num_envs, -1)


@pytest.mark.parametrize(
    ("env_class", "policy", "tolerance"),
    [
        (SmoothEnv, lqr, 0.02),
        (DeceptiveEnv, walk_to(BEST), 0.02),
        (CycleEnv, go_round, 1e-6),
        (MemoryEnv, remember, 1e-6),
        (CyclicMdpEnv, clockwise, 1e-6),
    ],
)
def test_the_optimal_policy_scores_one(env_class, policy, tolerance):
    assert mean_score(env_class(4096, seed=3), policy) == pytest.approx(1.0, abs=tolerance)


@pytest.mark.parametrize(
    ("env_class", "most"), [(SmoothEnv, 0.5), (DeceptiveEnv, 0.25), (CycleEnv, 0.05), (MemoryEnv, 0.05)]
)
def test_random_actions_are_far_from_it(env_class, most):
    assert mean_score(env_class(4096, seed=3), random_actions) < most


def test_the_riccati_solution_is_a_minimum():
    """Any other gain costs more: computed by simulation, not by the equation."""
    best = mean_score(SmoothEnv(8192, seed=5), lqr)
    for factor in (0.8, 1.25):
        assert mean_score(SmoothEnv(8192, seed=5), lambda env, f=factor: f * lqr(env)) < best


def test_the_smooth_dynamics_by_hand():
    env = SmoothEnv(1, seed=0)
    env.state["x"] = torch.tensor([[1.0, -2.0, 0.5, 0.25]])
    _, rewards, _, _ = env.step(torch.tensor([[0.5, -1.0]]))
    cost = (1.0 + 4.0) + 0.1 * (0.25 + 0.0625) + 0.3 * (0.25 + 1.0)
    assert rewards.item() == pytest.approx(-DT * cost)
    expected = torch.tensor([[1.0 + 0.05, -2.0 + 0.025, 0.5 + 0.1 * 3 * 0.5, 0.25 - 0.1 * 3]])
    torch.testing.assert_close(env.state["x"], expected)


def test_all_basins_but_one_are_traps():
    scores = [mean_score(DeceptiveEnv(1024, seed=1), walk_to(basin)) for basin in range(len(BASINS))]
    assert scores[BEST] > 0.98
    assert max(score for basin, score in enumerate(scores) if basin != BEST) < 0.65
    env = DeceptiveEnv(1)
    between = 0.5 * (env.centers + env.centers.roll(1, dims=0))
    assert bool((env.pay(between) == 0).all()), "nothing leads from one basin to the next"
    assert float(env.pay(torch.zeros(1, 2))) == 0.0


def test_one_wrong_turn_costs_the_whole_round():
    env = CycleEnv(1)
    for _ in range(STATIONS - 1):
        _, rewards, _, _ = env.step(go_round(env))
        assert rewards.item() == 0.0
    env.step(-go_round(env))
    assert env.state["station"].item() == 0


def test_the_cyclic_mdp_is_the_one_of_the_paper():
    """Against a step-by-step version of one environment each, with the action probabilities that make both ends."""
    env, horizon = CyclicMdpEnv(16, seed=2), 40
    env.horizon = horizon
    place, length, total = [0] * 16, [0] * 16, [0.0] * 16
    generator = torch.Generator().manual_seed(5)
    ends = {"fallen": 0, "time": 0}
    for _ in range(600):
        seen = env.get_observations()["policy"]
        assert seen.tolist() == [[float(place[e] == s) for s in range(3)] for e in range(16)]
        outputs = 2.0 * torch.randn(16, 3, generator=generator)
        outputs[:, CLOCKWISE] += 8.0
        _, rewards, dones, extras = env.step(outputs)
        for e in range(16):
            right = outputs[e].tolist().index(max(outputs[e].tolist())) == CLOCKWISE
            length[e] += 1
            total[e] += 1.0 if right else -1.0
            timed_out = right and length[e] == horizon
            assert rewards[e] == (1.0 if right else -1.0)
            assert bool(dones[e]) == (not right or timed_out) and bool(extras["time_outs"][e]) == timed_out
            if right:
                place[e] = (place[e] + 1) % 3
            if timed_out:
                assert extras["final_obs"]["policy"][e].argmax() == place[e]
            if dones[e]:
                assert extras["score"][e].item() == pytest.approx(total[e] / horizon)
                ends["time" if timed_out else "fallen"] += 1
                place[e], length[e], total[e] = 0, 0, 0.0
    assert min(ends.values()) > 20, "both ends were seen"


def test_the_optimum_of_the_cyclic_mdp_by_brute_force():
    """All 27 deterministic policies, each played to its end."""
    best = []
    for policy in [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]:
        env = CyclicMdpEnv(1)
        total, done = 0.0, False
        while not done:
            place = int(env.get_observations()["policy"].argmax())
            _, reward, ended, _ = env.step(torch.nn.functional.one_hot(torch.tensor([policy[place]]), 3).float())
            total, done = total + float(reward), bool(ended)
        best.append((total, policy))
    assert max(best) == (2000.0, (CLOCKWISE,) * 3)
    assert sorted(best)[-2][0] == 1.0, "every other policy falls within a round"


def test_the_cue_is_seen_once():
    env = MemoryEnv(64, seed=2)
    assert bool((env.observe()[:, 0].abs() == 1).all())
    env.step(torch.zeros(64, 1))
    assert bool((env.observe()[:, 0] == 0).all())


@pytest.mark.parametrize("env_class", ENVS)
def test_a_restored_environment_goes_on_bit_by_bit(env_class):
    env = env_class(32, seed=7)
    for _ in range(5):
        env.step(random_actions(env))
    state = env.state_dict()
    actions = [random_actions(env) for _ in range(2 * env.horizon)]
    first = [env.step(action)[:2] for action in actions]
    other = env_class(32, seed=1)
    assert other.load_state_dict(state)
    for (obs, rewards), action in zip(first, actions, strict=True):
        obs_again, rewards_again, _, _ = other.step(action)
        assert torch.equal(obs["policy"], obs_again["policy"])
        assert torch.equal(rewards, rewards_again)


@pytest.mark.parametrize("env_class", ENVS)
def test_more_than_200_000_steps_a_second(env_class):
    env = env_class(4096)
    actions = random_actions(env)
    env.step(actions)
    rates = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(50):
            env.step(actions)
        rates.append(50 * env.num_envs / (time.perf_counter() - begin))
    assert max(rates) > 200_000
