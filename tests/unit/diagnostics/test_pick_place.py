"""Pick and place: contact, records, successes, and the hand that has them all."""

import math

import pytest
import torch

from epo_lab.diagnostics.pick_place import (
    CLOSED,
    GOAL_STEPS,
    GRASP_RADIUS,
    MOST_SUCCESSES,
    NEAR_STEPS,
    SPEED,
    TOLERANCE,
    PickPlaceEnv,
)

pytestmark = pytest.mark.unit


def carry(env):
    """Go to the object with half-open fingers, close them around it, and bring it to the goal."""
    state = env.state
    way = torch.where(state["holds"].unsqueeze(-1), state["goal"], state["object"]) - state["hand"]
    move = (way / SPEED).clamp(-1.0, 1.0)
    there = (way - SPEED * move).norm(dim=-1) < 0.5 * GRASP_RADIUS
    # what is closed without holding anything has to open first
    ready = (state["opening"] >= CLOSED) & (state["opening"] <= 0.55)
    close = state["holds"] | (there & ready)
    finger = torch.where(close, 1.0, (state["opening"] - 0.45) / 0.05)
    return torch.cat([move, finger.unsqueeze(-1)], dim=-1)


def first_scores(env, policy):
    """Return score and length of the first episode of every environment."""
    scores, lengths = torch.full((env.num_envs,), torch.nan), torch.zeros(env.num_envs)
    for step in range(env.horizon):
        _, _, dones, extras = env.step(policy(env))
        first = dones.bool() & scores.isnan()
        scores[first], lengths[first] = extras["score"][first], step + 1.0
    return scores, lengths


def test_a_hand_that_loses_no_time_has_all_successes():
    scores, lengths = first_scores(PickPlaceEnv(4096, seed=3), carry)
    assert bool((scores == 1.0).all())
    assert float(lengths.max()) < 0.9 * MOST_SUCCESSES * GOAL_STEPS, "the time is enough"


def test_random_actions_hardly_ever_carry():
    torch.manual_seed(0)
    scores, _ = first_scores(PickPlaceEnv(4096, seed=3), lambda env: torch.randn(env.num_envs, 3))
    assert float(scores.mean()) < 0.02


def test_fingers_hold_only_what_they_close_around():
    env = PickPlaceEnv(4)
    env.state["object"] = torch.zeros(4, 2)
    beside = torch.tensor([[0.0, 0.0], [GRASP_RADIUS - 0.01, 0.0], [GRASP_RADIUS + 0.01, 0.0], [0.0, 0.0]])
    env.state["hand"] = beside.clone()
    env.state["opening"] = torch.tensor([0.42, 0.42, 0.42, 0.38])
    env.step(torch.tensor([[0.0, 0.0, 1.0]] * 4))
    assert env.state["holds"].tolist() == [True, True, False, False], "the last one was closed before"
    assert env.get_observations()["policy"][:, 7].tolist() == [1.0, 1.0, 0.0, 0.0]
    env.step(torch.tensor([[0.0, 1.0, 0.0]] * 4))
    assert env.state["object"][:, 1].tolist() == pytest.approx([SPEED, SPEED, 0.0, 0.0])
    # opening lets go; the object falls faster and faster
    env.state["object"][0, 1] = env.state["hand"][0, 1] = 0.4
    heights = []
    for _ in range(5):
        env.step(torch.tensor([[0.0, 0.0, -1.0]] * 4))
        heights.append(env.state["object"][0, 1].item())
    assert heights == pytest.approx([0.35, 0.25, 0.1, 0.0, 0.0], abs=1e-6)


class ByHand:
    """The same problem for one environment, in numbers; where things are placed is told."""

    def __init__(self, state, index):
        self.state, self.index = state, index
        self.hand, self.opening = state["hand"][index].tolist(), 1.0
        self.holds, self.fall, self.successes = False, 0.0, 0
        self.place(state)

    def place(self, state):
        self.thing, self.goal = state["object"][self.index].tolist(), state["goal"][self.index].tolist()
        self.lifted, self.near, self.clock = False, 0, 0
        self.best_hand, self.best_goal = math.dist(self.hand, self.thing), math.dist(self.thing, self.goal)

    def step(self, action, state):
        """Return the reward, whether there was a success and whether the episode ended."""
        a = [max(-1.0, min(1.0, value)) for value in action]
        self.hand = [max(-1.0, min(1.0, self.hand[0] + 0.15 * a[0])), max(0.0, min(1.2, self.hand[1] + 0.15 * a[1]))]
        before, self.opening = self.opening, max(0.0, min(1.0, self.opening - 0.05 * a[2]))
        if self.opening >= 0.4:
            self.holds = False
        elif before >= 0.4 and math.dist(self.hand, self.thing) <= 0.1:
            self.holds = True
        if self.holds:
            self.thing, self.fall = list(self.hand), 0.0
        else:
            self.fall += 0.05
            self.thing[1] -= self.fall
        if self.thing[1] <= 0.0:
            self.thing[1] = self.fall = 0.0
        reward = 0.0
        if not self.lifted and self.thing[1] > 0.3:
            self.lifted = True
            reward += 3.0
        hand, goal = math.dist(self.hand, self.thing), math.dist(self.thing, self.goal)
        if hand < self.best_hand and not self.lifted:
            reward += 0.5 * (self.best_hand - hand)
        if goal < self.best_goal and self.lifted:
            reward += 2.0 * (self.best_goal - goal)
        self.best_hand, self.best_goal = min(hand, self.best_hand), min(goal, self.best_goal)
        if self.lifted and goal <= 0.1:
            self.near += 1
            reward += 10.0 / 3.0
        self.clock += 1
        success = self.near == 3
        if success:
            self.successes += 1
            self.holds, self.fall = False, 0.0
            self.place(state)
        return reward, success, self.clock == 48 or self.successes == 4


def test_every_step_by_hand():
    """A clumsy hand, in numbers, until lifts, drops, successes and both ends of an episode were seen."""
    torch.manual_seed(0)
    env = PickPlaceEnv(24, seed=4)
    env.state = {name: value.double() if value.is_floating_point() else value for name, value in env.state.items()}
    seen = dict.fromkeys(("success", "drop", "late", "all"), 0)
    noise = torch.linspace(0.0, 1.5, 24, dtype=torch.float64).unsqueeze(-1)
    others = [ByHand(env.state, index) for index in range(24)]
    for _ in range(500):
        actions = carry(env) + noise * torch.randn(24, 3, dtype=torch.float64)
        _, rewards, dones, extras = env.step(actions)
        for index, other in enumerate(others):
            held = other.holds
            successes = other.successes
            reward, success, ended = other.step(actions[index].tolist(), env.state)
            assert rewards[index].item() == pytest.approx(reward, abs=1e-5)
            assert bool(dones[index]) == ended
            seen["success"] += success
            seen["drop"] += held and not other.holds and not success
            if ended:
                assert extras["score"][index].item() == pytest.approx(other.successes / 4)
                seen["all" if other.successes == 4 else "late"] += 1
                assert successes <= 4
                others[index] = ByHand(env.state, index)
            else:
                assert env.state["hand"][index].tolist() == pytest.approx(other.hand, abs=1e-5)
                assert env.state["object"][index].tolist() == pytest.approx(other.thing, abs=1e-5)
                assert bool(env.state["holds"][index]) == other.holds
    assert min(seen.values()) > 10, seen


def test_a_way_back_and_forth_pays_once():
    env = PickPlaceEnv(1)
    env.state["object"], env.state["hand"] = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.9, 0.0]])
    env.state["nearest_hand"] = torch.tensor([0.9])
    there, back = torch.tensor([[-1.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    paid = [env.step(move)[1].item() for move in (there, back, there, there)]
    assert paid == pytest.approx([0.5 * SPEED, 0.0, 0.0, 0.5 * SPEED], abs=1e-6)


def test_a_success_takes_its_time_and_brings_a_new_goal():
    env = PickPlaceEnv(1)
    goal = env.state["goal"].clone()
    env.state["hand"], env.state["object"] = goal.clone(), goal.clone()
    env.state["holds"][:], env.state["lifted"][:], env.state["opening"][:] = True, True, 0.0
    env.state["nearest_goal"][:] = 0.0
    for step in range(NEAR_STEPS):
        assert env.state["successes"].item() == 0.0
        assert env.state["near_steps"].item() == step
        env.step(torch.tensor([[0.0, 0.0, 1.0]]))
    assert env.state["successes"].item() == 1.0
    assert env.state["object"][0, 1].item() == 0.0 and not bool(env.state["holds"])
    assert not torch.equal(env.state["goal"], goal)
    distance = (env.state["object"] - env.state["goal"]).norm().item()
    assert env.state["nearest_goal"].item() == pytest.approx(distance) and distance > TOLERANCE
