"""EnvPool's environments step by step: against MuJoCo itself, and against environments that are stepped one by one."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from epo_lab.base.keys import FINAL_OBS, LOG, TIME_OUTS
from epo_lab.envpool.env import EnvPoolCfg, EnvPoolEnv
from epo_lab.envpool.tasks import METRIC
from epo_lab.runner.guard import GuardedEnv

envpool = pytest.importorskip("envpool", reason="EnvPool is not installed (./isaaclab.sh -i envpool)")
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::UserWarning")]

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def make(name, num_envs=4, seed=0, **options):
    return EnvPoolEnv(EnvPoolCfg(name, num_envs, seed, "cpu", 2, options))


def seeds(num_envs, *seed):
    return (np.random.SeedSequence(seed).generate_state(num_envs) >> 1).tolist()


class OneByOne:
    """The same environments, each in a pool of its own, stepped and reset by hand."""

    def __init__(self, name, num_envs, seed=0, **options):
        self.pools = [envpool.make_gymnasium(name, num_envs=1, seed=[one], **options) for one in seeds(num_envs, seed)]
        self.obs = np.concatenate([pool.reset()[0] for pool in self.pools])

    def step(self, actions):
        rows = []
        for number, pool in enumerate(self.pools):
            final, reward, terminated, truncated, info = pool.step(actions[number : number + 1])
            obs = pool.reset()[0] if terminated[0] or truncated[0] else final
            rows.append((obs[0], final[0], reward[0], terminated[0], truncated[0], info["elapsed_step"][0]))
        self.obs, *rest = (np.stack(column) for column in zip(*rows, strict=True))
        return self.obs, *rest


def reward_of_half_cheetah(speed, action):
    return speed - 0.1 * np.square(action).sum()


def reward_of_hopper(speed, action):
    return speed + 1.0 - 1e-3 * np.square(action).sum()


@pytest.mark.parametrize(
    ("name", "model", "frame_skip", "hidden", "bound", "reward_of"),
    [
        ("HalfCheetah-v4", "half_cheetah.xml", 5, 1, 1.0, reward_of_half_cheetah),
        ("Hopper-v4", "hopper.xml", 4, 1, 1.0, reward_of_hopper),
        ("InvertedPendulum-v4", "inverted_pendulum.xml", 2, 0, 3.0, lambda speed, action: 1.0),
    ],
)
def test_a_step_is_that_of_mujoco(name, model, frame_skip, hidden, bound, reward_of):
    """Observation and reward, computed with Gymnasium's model and the task's formula, from actions in [-1, 1]."""
    mujoco = pytest.importorskip("mujoco")
    env = make(name, num_envs=1)
    physics = mujoco.MjModel.from_xml_path(str(ASSETS / model))
    state = mujoco.MjData(physics)
    # the first coordinate does not change the dynamics, and is not observed
    start = np.concatenate([np.zeros(hidden), env.get_observations()["policy"][0].numpy()])
    state.qpos[:], state.qvel[:] = start[: physics.nq], start[physics.nq :]
    draw = np.random.default_rng(0)
    for _ in range(4):
        action = draw.uniform(-0.5, 0.5, physics.nu).astype(np.float32)
        state.ctrl[:] = bound * action.astype(np.float64)
        before = state.qpos[0]
        mujoco.mj_step(physics, state, frame_skip)
        speed = (state.qpos[0] - before) / (frame_skip * physics.opt.timestep)

        obs, rewards, dones, _ = env.step(torch.from_numpy(action[None]))
        expected = np.concatenate([state.qpos[hidden:], state.qvel])
        assert not dones.any()
        np.testing.assert_allclose(obs["policy"][0].numpy(), expected, rtol=1e-4, atol=1e-4)
        assert float(rewards[0]) == pytest.approx(reward_of(speed, bound * action.astype(np.float64)), abs=2e-4)


@pytest.mark.parametrize(
    ("name", "options", "ends"),
    [
        ("Hopper-v4", {}, {"terminated"}),
        ("Hopper-v4", {"max_episode_steps": 20}, {"terminated", "truncated"}),
        ("HalfCheetah-v4", {"max_episode_steps": 15}, {"truncated"}),
    ],
)
def test_episodes_are_those_of_environments_that_are_stepped_by_hand(name, options, ends):
    num_envs, steps = 5, 90
    env, by_hand = make(name, num_envs, **options), OneByOne(name, num_envs, **options)
    np.testing.assert_array_equal(env.get_observations()["policy"].numpy(), by_hand.obs.astype(np.float32))
    draw, returns, seen = np.random.default_rng(1), np.zeros(num_envs), set()
    for _ in range(steps):
        actions = draw.uniform(-1.0, 1.0, (num_envs, env.num_actions)).astype(np.float32)
        obs, rewards, dones, extras = env.step(torch.from_numpy(actions))
        next_obs, final, reward, terminated, truncated, elapsed = by_hand.step(actions.astype(np.float64))

        np.testing.assert_array_equal(obs["policy"].numpy(), next_obs.astype(np.float32))
        np.testing.assert_array_equal(extras[FINAL_OBS]["policy"].numpy(), final.astype(np.float32))
        np.testing.assert_array_equal(rewards.numpy(), reward)
        done = terminated | truncated
        np.testing.assert_array_equal(dones.bool().numpy(), done)
        np.testing.assert_array_equal(extras[TIME_OUTS].numpy(), truncated & ~terminated)
        np.testing.assert_array_equal(env.episode_length_buf.numpy(), np.where(done, 0, elapsed))

        returns += reward
        assert (METRIC in extras.get(LOG, {})) == done.any()
        if done.any():
            assert extras[LOG][METRIC] == pytest.approx(returns[done].mean(), rel=1e-6)
            # the end of an episode is not its successor's beginning
            assert (obs["policy"].numpy()[done] != final.astype(np.float32)[done]).any(axis=1).all()
        returns[done] = 0.0
        seen |= ({"terminated"} if terminated.any() else set()) | ({"truncated"} if truncated.any() else set())
    assert seen == ends


def test_seeds_repeat_and_share_no_environment():
    starts = [make("Hopper-v4", 8, seed).get_observations()["policy"] for seed in (0, 0, 1)]
    assert torch.equal(starts[0], starts[1])
    assert not (starts[0][:, None] == starts[2][None]).all(dim=-1).any()


def test_an_evaluation_begins_anew_from_its_seed():
    env = make("Hopper-v4", 4, seed=3)
    first = env.get_observations()["policy"]
    for _ in range(5):
        env.step(torch.ones(4, 3))
    env.begin(3)
    assert torch.equal(env.get_observations()["policy"], first)
    assert not env.episode_length_buf.any()


def test_a_resumed_run_begins_other_episodes_and_says_that_none_goes_on():
    env = make("Hopper-v4", 4)
    first = env.get_observations()["policy"]
    for _ in range(5):
        env.step(torch.zeros(4, 3))
    state = env.state_dict()
    other = make("Hopper-v4", 4)
    assert other.load_state_dict(state) is False
    assert not torch.equal(other.get_observations()["policy"], first)
    assert other.state_dict() == state


def test_clocks_that_were_spread_cut_episodes_off_and_out_of_the_metric():
    env = make("HalfCheetah-v4", 3, max_episode_steps=10)
    env.episode_length_buf = torch.tensor([8, 0, 4])
    ends, logged = [], []
    for step in range(1, 13):
        _, _, dones, extras = env.step(torch.zeros(3, 6))
        ends += [(step, number) for number in dones.nonzero().flatten().tolist()]
        logged += [step] if LOG in extras else []
        assert torch.equal(extras[TIME_OUTS], dones.bool())
    assert ends == [(2, 0), (6, 2), (10, 1), (12, 0)]
    assert logged == [10, 12]


def test_a_guard_resets_only_what_is_broken():
    env = make("Hopper-v4", 4)
    guarded = GuardedEnv(env)
    for _ in range(3):
        obs, *_ = guarded.step(torch.zeros(4, 3))
    before = obs["policy"].clone()
    guarded._bad[2] = True
    assert guarded.end_iteration(0, None)
    after = guarded.get_observations()["policy"]
    others = [0, 1, 3]
    assert torch.equal(after[others], before[others])
    assert not torch.equal(after[2], before[2])
    assert env.episode_length_buf.tolist() == [3, 3, 0, 3]


@pytest.mark.parametrize(
    ("name", "size"), [("HumanoidStand-v1", 95), ("FetchReach-v4", 16), ("Mjlab-Cartpole-Balance-v0", 10)]
)
def test_observations_that_are_dicts_are_one_vector(name, size):
    env = make(name, 2)
    obs, rewards, _, _ = env.step(torch.zeros(2, env.num_actions))
    assert obs["policy"].shape == (2, size)
    assert obs["policy"].dtype == rewards.dtype == torch.float32
    assert obs["policy"].isfinite().all()
