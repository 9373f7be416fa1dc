"""The ring: every n-step transition equals one that is put together by hand from the recorded episodes."""

import random

import pytest
import torch
from tensordict import TensorDict

from epo_lab.base import memory
from epo_lab.base.errors import UserError
from epo_lab.storage.replay import Replay
from support.equality import assert_same
from support.off_policy import NoWait

pytestmark = pytest.mark.unit

ENVS, ACTIONS, GAMMA = 3, 2, 0.9


def as_obs(rows):
    """Return two groups of observations that no other step has."""
    numbers = torch.tensor(rows, dtype=torch.float32).unsqueeze(-1)
    return TensorDict({"policy": numbers * torch.tensor([1.0, -2.0]), "critic": numbers + 0.5}, [len(rows)])


class Recorder:
    """Feeds a ring with random episodes and writes down all that happens, environment by environment."""

    def __init__(self, replay, seed, finals=True, ends=0.25):
        self.replay, self.random, self.finals, self.ends = replay, random.Random(seed), finals, ends
        self.steps = [[] for _ in range(ENVS)]
        self.number = 0.0
        self.now = [self.new() for _ in range(ENVS)]

    def new(self):
        self.number += 1.0
        return self.number

    def step(self):
        actions, rewards, dones, time_outs, finals, broken = [], [], [], [], [], []
        for env in range(ENVS):
            fate = self.random.random()
            kind = "goes on"
            if fate < self.ends:
                kind = self.random.choice(["falls", "times out", "times out", "breaks"])
            final, following = self.new(), self.new()
            row = {"obs": self.now[env], "reward": self.random.uniform(-1, 1), "kind": kind, "final": final}
            row["action"] = [self.random.uniform(-1, 1) for _ in range(ACTIONS)]
            row["next"] = following
            self.steps[env].append(row)
            actions.append(row["action"])
            rewards.append(row["reward"])
            dones.append(kind != "goes on")
            # a flag without an end means nothing
            time_outs.append(kind == "times out" or (kind == "goes on" and self.random.random() < 0.3))
            finals.append(final)
            broken.append(kind == "breaks")
        self.replay.observe(as_obs(self.now))
        self.now = [self.steps[env][-1]["next"] for env in range(ENVS)]
        self.replay.add(
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.tensor(dones).long(),
            torch.tensor(time_outs),
            as_obs(finals) if self.finals else None,
            torch.tensor(broken),
        )

    def expected(self, env, step, n, kept_finals):
        """Return (rewards, discount, next observation or None, weight), the slow way."""
        total, taken = 0.0, 0
        history = self.steps[env]
        while taken < n and step + taken < len(history):
            row = history[step + taken]
            known = row["kind"] != "breaks" and (row["kind"] != "times out" or row["final"] in kept_finals)
            if not known:
                break
            total += GAMMA**taken * row["reward"]
            taken += 1
            if row["kind"] == "falls":
                return total, 0.0, None, 1.0
            if row["kind"] == "times out":
                return total, GAMMA**taken, row["final"], 1.0
        if taken == 0:
            return 0.0, 0.0, None, 0.0
        return total, GAMMA**taken, history[step + taken - 1]["next"], 1.0


def make(capacity=ENVS * 7, max_episode_length=1, **more):
    obs = as_obs([0.0] * ENVS)
    replay = Replay(obs, ACTIONS, capacity, max_episode_length, **more)
    replay.allocate()
    return replay


def compare(replay, recorder, n, kept_finals):
    """Compare every stored transition."""
    replay.observe(as_obs(recorder.now))
    steps = torch.arange(replay.size).repeat_interleave(ENVS)
    columns = torch.arange(ENVS).repeat(replay.size)
    batch = replay.gather(steps, columns, n, GAMMA)
    oldest = len(recorder.steps[0]) - replay.size
    for i, (step, env) in enumerate(zip(steps.tolist(), columns.tolist(), strict=True)):
        row = recorder.steps[env][oldest + step]
        reward, discount, following, weight = recorder.expected(env, oldest + step, n, kept_finals)
        assert torch.equal(batch.obs["policy"][i], as_obs([row["obs"]])["policy"][0])
        assert torch.equal(batch.obs["critic"][i], as_obs([row["obs"]])["critic"][0])
        assert batch.actions[i].tolist() == pytest.approx(row["action"])
        assert batch.rewards[i].item() == pytest.approx(reward, abs=1e-5)
        assert batch.discounts[i].item() == pytest.approx(discount, abs=1e-6)
        assert batch.weights[i].item() == weight
        if following is not None:
            assert torch.equal(batch.next_obs["policy"][i], as_obs([following])["policy"][0])
            assert torch.equal(batch.next_obs["critic"][i], as_obs([following])["critic"][0])


@pytest.mark.parametrize("n", range(1, 9))
def test_every_transition_equals_one_made_by_hand(n):
    # before the ring is full, when it just is, and after it has gone round more than twice
    replay = make()
    recorder = Recorder(replay, seed=n, ends=0.4)
    for _ in range(20):
        recorder.step()
        finals = [row["final"] for rows in recorder.steps for row in rows if row["kind"] == "times out"]
        compare(replay, recorder, n, set(finals))
    assert replay.size == 7
    kinds = {row["kind"] for rows in recorder.steps for row in rows}
    assert kinds == {"goes on", "falls", "times out", "breaks"}, "the comparison has seen everything"


@pytest.mark.parametrize("n", [1, 3])
def test_a_time_out_whose_final_observation_is_not_known_is_not_learned_from(n):
    replay = make()
    recorder = Recorder(replay, seed=11, finals=False)
    for _ in range(17):
        recorder.step()
        compare(replay, recorder, n, kept_finals=set())


def test_final_observations_that_were_overwritten_are_not_used():
    # room for 2 * 66 / 1000 + 3 = 4 of them
    replay = make(capacity=ENVS * 21, max_episode_length=1000)
    assert replay.num_finals < 6
    recorder = Recorder(replay, seed=5, ends=0.7)
    overwritten = 0
    for _ in range(40):
        recorder.step()
        rows = [rows[step] for step in range(len(recorder.steps[0])) for rows in recorder.steps]
        finals = [row["final"] for row in rows if row["kind"] == "times out"]
        overwritten = max(overwritten, len(finals) - replay.num_finals)
        compare(replay, recorder, 3, set(finals[-replay.num_finals :]))
    assert overwritten > 10


def test_what_was_cut_off_is_not_continued():
    replay = make()
    recorder = Recorder(replay, seed=2, ends=0.0)
    for _ in range(3):
        recorder.step()
    replay.cut()
    recorder.now = [recorder.new() for _ in range(ENVS)]
    for env in range(ENVS):
        recorder.steps[env][-1]["kind"] = "breaks"
    for _ in range(3):
        recorder.step()
        compare(replay, recorder, 4, set())


def test_all_stored_transitions_are_drawn_equally_often():
    replay = make()
    recorder = Recorder(replay, seed=3, ends=0.0)
    for _ in range(9):
        recorder.step()
    drawn = replay.sample(21_000, 1, GAMMA).obs["policy"][:, 0]
    values, counts = drawn.unique(return_counts=True)
    assert sorted(values.tolist()) == sorted(row["obs"] for rows in recorder.steps for row in rows[-7:])
    # 1,000 each, with a standard deviation of 31
    assert counts.min() > 850 and counts.max() < 1150


def test_a_non_finite_final_observation_is_not_learned_from():
    replay = make()
    replay.observe(as_obs([1.0, 2.0, 3.0]))
    ones = torch.ones(ENVS)
    replay.add(torch.zeros(ENVS, ACTIONS), ones, ones, ones, as_obs([4.0, float("nan"), 6.0]))
    replay.observe(as_obs([7.0, 8.0, 9.0]))
    batch = replay.gather(torch.zeros(ENVS, dtype=torch.long), torch.arange(ENVS), 1, GAMMA)
    assert batch.weights.tolist() == [1.0, 0.0, 1.0]
    assert batch.next_obs["policy"].isfinite().all()
    assert batch.next_obs["policy"][:, 0].tolist()[::2] == [4.0, 6.0]


@pytest.mark.parametrize("steps", [4, 20])
def test_a_restored_ring_is_the_same(tmp_path, steps):
    replay = make()
    recorder = Recorder(replay, seed=8)
    for _ in range(steps):
        recorder.step()
    replay.observe(as_obs(recorder.now))
    torch.save(replay.state_dict(), tmp_path / "replay.pt")
    again = Replay(as_obs([0.0] * ENVS), ACTIONS, ENVS * 7, 1)
    again.load_state_dict(torch.load(tmp_path / "replay.pt", weights_only=True))
    first, second = replay.sample(50, 3, GAMMA), again.sample(50, 3, GAMMA)
    assert_same([*first.obs.values(), *first[1:4]], [*second.obs.values(), *second[1:4]])
    assert_same(replay.state_dict(), again.state_dict())
    with pytest.raises(UserError, match="go on with the same sizes"):
        Replay(as_obs([0.0] * ENVS), ACTIONS, ENVS * 8, 1).load_state_dict(again.state_dict())


def test_the_newest_observations_are_those_of_the_last_steps():
    replay = make()
    recorder = Recorder(replay, seed=4)
    for _ in range(12):
        recorder.step()
    expected = {row["obs"] for rows in recorder.steps for row in rows[-2:]}
    assert set(replay.newest(2)["policy"][:, 0].tolist()) == expected


@pytest.mark.parametrize("steps", [3, 60])
def test_the_mean_age_is_that_of_the_stored_steps(steps):
    replay = make(capacity=ENVS * 20)
    times = [7 * step + step % 3 for step in range(steps)]
    for time in times:
        replay.observe(as_obs([0.0] * ENVS))
        replay.add(torch.zeros(ENVS, ACTIONS), torch.zeros(ENVS), torch.zeros(ENVS), time=time)
    kept = times[-20:]
    assert replay.mean_age(500) == pytest.approx(500 - sum(kept) / len(kept))
    other = make(capacity=ENVS * 20)
    other.load_state_dict(replay.state_dict())
    assert other.mean_age(500) == replay.mean_age(500)


def test_observations_in_half_the_memory_are_those_rounded():
    replay = make(dtype=torch.bfloat16)
    recorder = Recorder(replay, seed=4, ends=0.0)
    recorder.now = [1.2345, 3.14159, 2.71828]
    recorder.step()
    replay.observe(as_obs(recorder.now))
    batch = replay.gather(torch.zeros(3, dtype=torch.long), torch.arange(3), 1, GAMMA)
    expected = as_obs([1.2345, 3.14159, 2.71828])["policy"]
    assert torch.equal(batch.obs["policy"], expected.bfloat16().float())
    assert not torch.equal(batch.obs["policy"], expected)


def test_its_size_is_what_it_holds_and_what_does_not_fit_is_refused(monkeypatch):
    replay = make(capacity=3000)
    held = sum(value.nbytes for value in replay._data.values(True, True)) + sum(
        value.nbytes for value in replay._finals.values()
    )
    assert replay.num_bytes == held
    assert str(make(capacity=300_000)).startswith("replay: 0.3 M transitions, ")
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    with pytest.raises(UserError, match=r"needs .* on cpu, where .* are free: set agent.algorithm.replay.size lower"):
        make(capacity=3000)


def test_ten_million_transitions_take_what_the_table_says():
    # ANYmal: 48 observations, 12 actions
    obs = TensorDict({"policy": torch.zeros(4096, 48)}, [4096])
    gigabytes = [
        Replay(obs, 12, 10_000_000, 1000, dtype=kind).num_bytes / 1e9 for kind in (torch.float, torch.bfloat16)
    ]
    assert gigabytes == pytest.approx([2.5, 1.6], abs=0.1)


def test_neither_writing_nor_drawing_waits_for_the_device():
    replay = make()
    obs, flags = as_obs([1.0, 2.0, 3.0]), torch.ones(ENVS, dtype=torch.long)
    actions = torch.zeros(ENVS, ACTIONS)
    with NoWait():
        for _ in range(9):
            replay.observe(obs)
            replay.add(actions, torch.ones(ENVS), flags, flags, obs, flags)
        replay.cut()
        replay.sample(16, 8, GAMMA)
        replay.newest(3)
