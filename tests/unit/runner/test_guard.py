"""Non-finite environments: cleaned, ended, counted, reset, and in the end named."""

import json
import math

import pytest
import torch
from torch.utils._pytree import tree_leaves

from epo_lab.base.keys import BROKEN
from epo_lab.population.fitness import FitnessTracker
from epo_lab.runner.guard import GuardedEnv, NonFiniteEnvError
from epo_lab.runner.runner import EpoRunner
from support import off_policy
from support.toy_env import ToyEnv, settings

pytestmark = pytest.mark.unit


class BreakingEnv(ToyEnv):
    """Environment 3 becomes NaN in observation 2 with the fifth step, environment 5 gets an infinite reward."""

    def __init__(self, *args, heals=True, **kwargs):
        super().__init__(*args, **kwargs)
        self.broken, self.heals, self.resets, self.steps = set(), heals, [], 0

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        self.steps += 1
        if self.steps == 5 or not self.heals:
            self.broken |= {3, 5}
        if 3 in self.broken:
            obs["policy"][3, 2] = math.nan
            dones[3] = 0
        if 5 in self.broken:
            rewards[5] = math.inf
            extras["time_outs"][5] = True
        return obs, rewards, dones, extras

    def reset_envs(self, mask):
        self.resets.append(mask.nonzero().flatten().tolist())
        self.broken.clear()


def test_healthy_numbers_pass_unchanged():
    plain, guarded = ToyEnv(), GuardedEnv(ToyEnv())
    for _ in range(30):
        actions = torch.randn(16, 3)
        expected, found = plain.step(actions), guarded.step(actions)
        assert torch.equal(expected[0]["policy"], found[0]["policy"])
        assert torch.equal(expected[1], found[1])
        assert torch.equal(expected[2], found[2])
    guarded.end_iteration(0, None)
    assert guarded.reset_count == 0


def test_broken_steps_end_the_episode_with_finite_numbers():
    env = GuardedEnv(BreakingEnv())
    for step in range(8):
        obs, rewards, dones, extras = env.step(torch.zeros(16, 3))
        assert bool(obs["policy"].isfinite().all())
        assert bool(rewards.isfinite().all())
        if step >= 4:
            assert dones[[3, 5]].tolist() == [1, 1]
            assert rewards[[3, 5]].tolist() == [0.0, 0.0]
            assert not bool(extras["time_outs"][5])
    env.end_iteration(0, None)
    assert env.unwrapped.resets == [[3, 5]]
    assert env.reset_count == 2
    env.step(torch.zeros(16, 3))
    env.end_iteration(1, None)
    assert env.reset_count == 2


def test_a_run_with_a_broken_environment_goes_on_and_counts(tmp_path):
    env = BreakingEnv()
    cfg = settings(num_agents=4) | {"check_for_nan": True, "save_interval": 100}
    runner = EpoRunner(env, cfg, log_dir=str(tmp_path))
    runner.learn(3)
    assert env.resets == [[3, 5]]
    assert all(bool(p.isfinite().all()) for p in runner.alg.actor.parameters())
    header, *_, last = (tmp_path / "curves.csv").read_text().splitlines()
    assert float(dict(zip(header.split(","), last.split(","), strict=True))["Guard/reset_envs"]) == 2


def test_what_a_broken_environment_gives_is_no_fitness():
    tracker = FitnessTracker(torch.zeros(16, dtype=torch.long), 1)
    env = GuardedEnv(BreakingEnv())
    tracker._notes.tainted.zero_()
    for _ in range(8):
        _, rewards, dones, extras = env.step(torch.zeros(16, 3))
        tracker.step(rewards, dones, extras)
    state = tracker.state_dict()
    assert state["tainted"][[3, 5]].tolist() == [True, True]
    assert state["episodes"][[3, 5]].tolist() == [0, 0]
    env.end_iteration(0, None)
    _, rewards, _, extras = env.step(torch.zeros(16, 3))
    assert not extras[BROKEN].any() and (rewards[[3, 5]] != 0).all(), "after the reset they count again"


def test_the_count_survives_a_resume(tmp_path):
    cfg = settings(num_agents=4) | {"save_interval": 100}
    EpoRunner(BreakingEnv(), cfg, log_dir=str(tmp_path)).learn(3)
    runner = EpoRunner(ToyEnv(), cfg)
    runner.resume(str(tmp_path / "model_2.pt"))
    assert runner.env.reset_count == 2


class SeenAfterReset(BreakingEnv):
    """Shows 7 in every observation of an environment that was just reset."""

    def reset_envs(self, mask):
        super().reset_envs(mask)
        self._state[mask] = 7.0


def test_the_first_action_after_a_mend_is_for_what_is_seen_after_it(tmp_path):
    runner = EpoRunner(SeenAfterReset(), settings(num_agents=4))
    seen = []
    act = runner.alg.act

    def watch(obs):
        seen.append(obs["policy"].clone())
        return act(obs)

    runner.alg.act = watch
    runner.learn(2)
    first_of_second = seen[8]
    assert (first_of_second[[3, 5]] == 7.0).all()
    assert (first_of_second[[0, 1, 2, 4]] != 7.0).all()


def test_too_many_in_a_row_stop_the_run_with_a_dump(tmp_path):
    cfg = settings(num_agents=4) | {"guard_limit": 3}
    runner = EpoRunner(BreakingEnv(heals=False), cfg, log_dir=str(tmp_path))
    with pytest.raises(
        NonFiniteEnvError, match=r"guard_bound=1e\+06 in 3 iterations in a row.*environment 3 .*policy\[2\], reward"
    ):
        runner.learn(10)
    dump = json.loads((tmp_path / "nonfinite.json").read_text())
    assert [entry["env"] for entry in dump["envs"]] == [3, 5]
    assert dump["iteration"] == 2
    assert dump["envs"][0]["step"] == 16
    assert dump["terms"] == ["observation policy[2]", "reward"]


class HugeEnv(BreakingEnv):
    """As a simulation that explodes: finite numbers, far beyond everything that means anything."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        obs["policy"] = torch.where(obs["policy"].isnan(), 1e30, obs["policy"])
        return obs, rewards.clamp(max=1e30), dones, extras


class FourBreak(BreakingEnv):
    """Once, four environments show what is no number or a huge one, and four others give it as a reward."""

    def step(self, actions):
        obs, rewards, dones, extras = ToyEnv.step(self, actions)
        self.steps += 1
        if self.steps == 5:
            bad = torch.tensor([math.nan, math.inf, -math.inf, 1e30])
            obs["policy"][::4, 2], rewards[1::4] = bad, bad
        return obs, rewards, dones, extras


def settings_of(agent):
    if agent in ("SAC", "TD3", "ES", "CemRl", "ESAC"):
        cfg = off_policy.settings(agent)
        cfg["algorithm"] |= {} if agent in ("SAC", "TD3") else {"num_agents": 4}
        if agent == "ES":
            cfg["algorithm"] = {name: cfg["algorithm"][name] for name in ("class_name", "num_agents")}
        return cfg
    more = {"diversity__attraction": 0.1, "diversity__adversarial": 0.1} if agent == "cpo" else {}
    cfg = settings(num_agents=4, normalize_value=True, **more) if agent != "stock" else settings()
    own = {"stock": "PPO", "PBT": "epo_lab.algorithms:PBT"}
    cfg["algorithm"]["class_name"] = own.get(agent, cfg["algorithm"]["class_name"])
    return cfg


@pytest.mark.parametrize("agent", ["epo", "cpo", "stock", "PBT", "SAC", "TD3", "ES", "CemRl", "ESAC"])
def test_what_is_no_number_or_a_huge_one_leaves_no_trace_in_a_run(tmp_path, agent):
    env = FourBreak()
    runner = EpoRunner(env, settings_of(agent) | {"save_interval": 1}, log_dir=str(tmp_path))
    runner.learn(4)
    assert env.resets == [[0, 1, 4, 5, 8, 9, 12, 13]] and runner.env.reset_count == 8
    assert float(runner.alg.policy().obs_normalizer.std.max()) < 3.0, "the normaliser has not seen it"
    saved = torch.load(tmp_path / "model_3.pt", weights_only=True)
    models = [state for name, state in saved.items() if name.endswith("_state_dict")]
    assert all(bool(value.isfinite().all()) for value in tree_leaves(models) if isinstance(value, torch.Tensor))
    assert all(bool(p.isfinite().all()) for model in runner.alg.memory()["networks"] for p in parameters(model))


def parameters(model):
    return model.parameters() if hasattr(model, "parameters") else [model.rows] if hasattr(model, "rows") else []


def test_what_is_below_the_bound_is_the_users_business():
    env = HugeEnv()
    guarded = GuardedEnv(env, bound=1e31)
    for _ in range(6):
        obs, rewards, _, extras = guarded.step(torch.zeros(16, 3))
    assert float(obs["policy"].max()) > 1e29 and float(rewards.max()) > 1e29 and not extras[BROKEN].any()


def test_huge_final_observations_are_marked_as_unknown():
    env = ToyEnv()
    plain = env.step

    def step(actions):
        obs, rewards, dones, extras = plain(actions)
        return obs, rewards, dones, {**extras, "final_obs": {"policy": obs["policy"] * 1e30, "index": dones}}

    env.step = step
    final = GuardedEnv(env).step(torch.zeros(16, 3))[3]["final_obs"]
    assert bool(final["policy"].isnan().all()) and final["index"].dtype == torch.long


def test_normalisers_and_classifier_survive_without_the_guard():
    """As in rsl_rl's own runner, which has none."""
    from rsl_rl.modules import EmpiricalNormalization

    from epo_lab.algorithms.off_policy.return_scale import ReturnScale
    from epo_lab.algorithms.on_policy.value_normalizer import ValueNormalizer
    from epo_lab.models.normalization import GuardedNormalization

    batches = [torch.randn(32, 3, generator=torch.Generator().manual_seed(n)) for n in range(4)]
    ours, stock = GuardedNormalization(3), EmpiricalNormalization(3)
    for batch in batches:
        ours.update(batch)
        stock.update(batch)
    assert torch.equal(ours._mean, stock._mean) and torch.equal(ours._std, stock._std), "to the last bit"
    for bad in (math.nan, math.inf, 1e30):
        ours.update(torch.full((32, 3), bad))
    assert torch.allclose(ours.mean, stock.mean) and float(ours.std.max()) <= float(stock.std.max())

    values, scale = ValueNormalizer(), ReturnScale(2, 0.9, 5.0, "cpu")
    for number in (1.0, math.nan, math.inf, 3.0):
        values.update(torch.tensor([number, 2.0]))
        scale.step(torch.tensor([number, 1.0]), torch.zeros(2))
    scale.merge()
    assert bool(values.mean.isfinite()) and bool(values.var.isfinite()) and bool(scale.factor.isfinite())


def test_a_bad_batch_leaves_the_classifier_as_it_was():
    runner = EpoRunner(ToyEnv(), settings(num_agents=4, diversity__adversarial=0.1))
    part = runner.alg.parts()["discriminator"].owner
    before = [parameter.clone() for parameter in part.net.parameters()]
    width = before[0].shape[1]
    part.fit(torch.full((32, width), math.nan), torch.zeros(32, dtype=torch.long), 1)
    assert all(torch.equal(old, new) for old, new in zip(before, part.net.parameters(), strict=True))
