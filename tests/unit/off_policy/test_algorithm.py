"""SAC and TD3 as algorithms: what they learn from, how they explore, and that they can be resumed."""

import copy
import dataclasses
import itertools
import shutil
import typing

import pytest
import torch
import yaml
from torch.nn.utils import parameters_to_vector

from epo_lab.algorithms import registry
from epo_lab.algorithms.off_policy.cem_rl import Learners
from epo_lab.algorithms.off_policy.exploration import MOST_REPEATS, RepeatedNoise, SpreadNoise
from epo_lab.algorithms.off_policy.gradient import GradientStep
from epo_lab.algorithms.off_policy.learner import Learner
from epo_lab.algorithms.off_policy.options import SacOptions, Td3Options
from epo_lab.algorithms.off_policy.population import copy_row
from epo_lab.algorithms.off_policy.return_scale import ReturnScale
from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.options import build
from epo_lab.configs.names import AGENTS_DIR
from epo_lab.configs.sizes import SIZES, at_size
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.models.members import StackedPolicies
from epo_lab.runner.runner import EpoRunner
from support.equality import assert_same
from support.off_policy import NoWait, settings
from support.toy_env import ToyEnv, make, rollout, train

pytestmark = pytest.mark.unit

KINDS = ["SAC", "TD3"]


class FinalEnv(ToyEnv):
    """The toy environment, with final observations and everything that may be wrong with them."""

    def step(self, actions):
        before = self._state.clone()
        obs, rewards, dones, extras = super().step(actions)
        return obs, rewards, dones, {**extras, "final_obs": {"policy": before + 100.0}}


def trained(name, iterations=20, **algorithm):
    env = FinalEnv(16)
    alg = make(env, settings(name, **algorithm))
    train(alg, env, iterations, steps=4)
    return alg, env


# --- targets


def flat(functions):
    return parameters_to_vector(functions.net.parameters()).detach().clone()


def batch_of(alg, size=64):
    return alg.replay.sample(size, alg.options.n_step, alg.options.gamma)


@pytest.mark.parametrize("atoms", [1, 21])
@pytest.mark.parametrize("name", KINDS)
def test_a_time_out_is_followed_by_a_value_and_a_termination_by_none(name, atoms):
    env = FinalEnv(4)
    alg = make(env, settings(name, critic={"atoms": atoms, "value_range": 5.0}, n_step=1, scale_rewards=False))
    obs = env.get_observations()
    final = {"policy": torch.full((4, 5), 0.7)}
    dones, time_outs = torch.tensor([1, 1, 0, 0]), torch.tensor([True, False, False, False])
    with torch.inference_mode():
        alg.act(obs)
        alg.process_env_step(obs, torch.full((4,), 0.25), dones, {"time_outs": time_outs, "final_obs": final})
        alg.compute_returns(obs)
    batch = alg.replay.gather(torch.zeros(3, dtype=torch.long), torch.arange(3), 1, alg.options.gamma)
    alg.learner.noise = lambda like: torch.zeros(*like.shape[:-1], 3)
    targets = alg.learner.targets(batch)
    values = (targets * alg.critic.atoms).sum(-1) if atoms > 1 else targets

    def expected(rows):
        """Return reward and discounted value, within the support, of the smaller target function."""
        rows = {"policy": rows}
        output = alg.actor.output(rows)
        unit, bonus = alg.actor.distribution.unit(output), 0.0
        if name == "SAC":
            unit, log_prob = alg.actor.distribution.draw(output, torch.zeros(1, 3))
            bonus = -0.01 * log_prob.item()
        target = alg.learner.target
        both = target(target.latent(rows), unit)[:, 0]
        smaller = both[target.values(both).argmin()]
        places = 0.25 + alg.options.gamma * ((alg.critic.atoms if atoms > 1 else smaller) + bonus)
        return (smaller.softmax(-1) * places.clamp(-5, 5)).sum().item() if atoms > 1 else places.item()

    wanted = [expected(final["policy"][:1]), 0.25, expected(obs["policy"][2:3])]
    assert values.tolist() == pytest.approx(wanted, abs=1e-5)


def test_a_broken_environment_is_not_learned_from():
    env = FinalEnv(4)
    alg = make(env, settings())
    obs = env.get_observations()
    with torch.inference_mode():
        alg.act(obs)
        broken = torch.tensor([False, True, False, False])
        alg.process_env_step(obs, torch.ones(4), broken.long(), {"broken_envs": broken})
        alg.compute_returns(obs)
    batch = alg.replay.gather(torch.zeros(4, dtype=torch.long), torch.arange(4), 1, 0.9)
    assert batch.weights.tolist() == [1.0, 0.0, 1.0, 1.0]


# --- gradient steps


@pytest.mark.parametrize("name", KINDS)
def test_the_targets_follow_and_the_policy_learns_every_second_time(name):
    alg, _ = trained(name, 10)
    learner, batch = alg.learner, batch_of(alg)
    before = flat(learner.target), flat(learner.critic), list(alg.actor.mlp.parameters())
    actor = [value.detach().clone() for value in before[2]]
    learner.update(batch, with_policy=False)
    expected = before[0] + alg.options.tau * (flat(learner.critic) - before[0])
    torch.testing.assert_close(flat(learner.target), expected)
    assert not torch.equal(flat(learner.critic), before[1])
    assert all(torch.equal(new, old) for new, old in zip(alg.actor.mlp.parameters(), actor, strict=True))
    critic = flat(learner.critic)
    learner.actor_update(batch)
    assert not all(torch.equal(new, old) for new, old in zip(alg.actor.mlp.parameters(), actor, strict=True))
    assert torch.equal(flat(learner.critic), critic), "the policy's step leaves the critic alone"
    steps, turns = alg.clock.gradient_steps, []
    learner.update = lambda *_, with_policy: turns.append(with_policy)
    for _ in range(4):
        alg.gradient_step()
    assert turns == [(steps + i) % 2 == 0 for i in range(1, 5)]


@pytest.mark.parametrize("name", KINDS)
def test_the_policy_climbs_the_value(name):
    alg, _ = (
        trained(name, 5, learning_rate=1e-2, temperature={"initial": 1e-6})
        if name == "SAC"
        else trained(name, 5, learning_rate=1e-2)
    )
    batch = batch_of(alg, 512)

    def value():
        unit = alg.actor.distribution.unit(alg.actor.output(batch.obs))
        return alg.learner.policy_values(batch.obs, unit).mean().item()

    before = value()
    for _ in range(30):
        alg.learner.actor_update(batch)
    assert value() > before + 0.01


def test_members_of_a_population_learn_as_each_alone():
    alg, _ = trained("TD3", 5)
    batch = batch_of(alg)
    policies = StackedPolicies(alg.actor, 3, torch.arange(3))
    rows = policies.rows + 0.1 * torch.randn(policies.rows.shape, generator=torch.Generator().manual_seed(0))
    single = [copy.deepcopy(alg.actor) for _ in rows]
    for row, actor in zip(rows, single, strict=True):
        copy_row(row, actor)
        alg.learner.actor_update(batch, actor, alg.learner.make_step(actor.mlp))
    together = Learners(policies, alg.actor, rows)
    alg.learner.actor_update(batch, together, GradientStep([together.rows], alg.options.learning_rate))
    found = together.output(batch.obs)
    for member, actor in enumerate(single):
        torch.testing.assert_close(found[member], actor.output(batch.obs), atol=1e-5, rtol=1e-5)
        assert not torch.allclose(found[member], found[(member + 1) % 3])
    assert not torch.allclose(together.rows, rows)


def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted():
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    step = GradientStep([parameter], 0.1)
    step(parameter.square().sum())
    kept, state = parameter.detach().clone(), copy.deepcopy(step.optimizer.state_dict())
    step((parameter * float("inf")).sum())
    step((parameter * float("nan")).sum())
    assert torch.equal(parameter, kept)
    assert_same(step.optimizer.state_dict()["state"], state["state"])
    assert (step.skipped.item(), step.in_a_row.item()) == (2.0, 2.0)
    step(parameter.square().sum())
    assert not torch.equal(parameter, kept)
    assert (step.skipped.item(), step.in_a_row.item()) == (2.0, 0.0)


def test_a_step_is_torchs_adamw_on_the_clipped_gradient():
    torch.manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(3))]
    theirs = [torch.nn.Parameter(value.detach().clone()) for value in ours]
    step = GradientStep(ours, 0.01, weight_decay=0.1, max_norm=0.5)
    optimizer = torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.1)
    for scale in (0.01, 5.0, 1.0):
        step(scale * sum((value.sin() * 3).sum() for value in ours))
        optimizer.zero_grad()
        (scale * sum((value.sin() * 3).sum() for value in theirs)).backward()
        torch.nn.utils.clip_grad_norm_(theirs, 0.5)
        optimizer.step()
    assert_same([p.detach().round(decimals=5) for p in ours], [p.detach().round(decimals=5) for p in theirs])


def test_too_many_skipped_updates_end_the_run():
    env = FinalEnv(16)
    alg = make(env, settings(max_skipped_updates=5))
    with torch.no_grad():
        alg.critic.net.weights[0].fill_(float("nan"))
    with pytest.raises(NonFiniteUpdateError, match="gradient steps in a row were not finite"):
        train(alg, env, 20, steps=4)


# --- exploration


def test_actions_are_random_at_first_and_fill_their_bounds():
    env = FinalEnv(64)
    alg = make(env, settings(action_bounds=[[0.0, 1.0], [-2.0, 2.0], [3.0, 5.0]], warmup_steps=64 * 40))
    seen = []
    with torch.inference_mode():
        for _ in range(40):
            assert alg.warming_up
            seen.append(alg.act(env.get_observations()).clone())
            obs, rewards, dones, extras = env.step(seen[-1])
            alg.process_env_step(obs, rewards, dones, extras)
        assert not alg.warming_up
    actions = torch.cat(seen)
    torch.testing.assert_close(actions.mean(0), torch.tensor([0.5, 0.0, 4.0]), atol=0.1, rtol=0)
    # a uniform distribution on +-b has the deviation b / sqrt 3
    torch.testing.assert_close(actions.std(0), torch.tensor([0.5, 2.0, 1.0]) / 3**0.5, atol=0.05, rtol=0)


@pytest.mark.parametrize("spread", ["random", "linear"])
def test_every_environment_has_noise_of_its_own_size(spread):
    noise = SpreadNoise(5, 2, torch.Generator().manual_seed(0), std_min=0.1, std_max=0.5, spread=spread)
    drawn = torch.stack([noise.draw() for _ in range(4000)])
    torch.testing.assert_close(drawn.std(dim=(0, 2)), noise.std.squeeze(1), rtol=0.05, atol=0)
    before = noise.std.clone()
    noise.end_episodes(torch.tensor([0, 1, 0, 1, 0]))
    changed = (noise.std != before).squeeze(1).tolist()
    assert changed == ([False, True, False, True, False] if spread == "random" else [False] * 5)
    if spread == "linear":
        assert noise.std.squeeze(1).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert noise.std.min() >= 0.1 and noise.std.max() <= 0.5


def test_repeated_noise_lasts_as_long_as_zeta_says():
    noise = RepeatedNoise(2000, 1, torch.Generator().manual_seed(0), repeat=True)
    drawn = torch.stack([noise.draw().squeeze(1) for _ in range(200)])
    lengths = []
    for column in drawn.T.tolist():
        length = 1
        for now, following in itertools.pairwise(column):
            if now == following:
                length += 1
            else:
                lengths.append(length)
                length = 1
    counts = torch.bincount(torch.tensor(lengths), minlength=MOST_REPEATS + 1)[1:].double()
    expected = 1.0 / torch.arange(1, MOST_REPEATS + 1).double().square()
    torch.testing.assert_close(counts / counts.sum(), expected / expected.sum(), atol=0.01, rtol=0)
    left = noise.state_dict()["left"]
    noise.end_episodes(torch.ones(2000))
    assert left.max() > 0 and noise.state_dict()["left"].max() == 0


# --- rewards


def test_returns_are_scaled_into_the_support():
    scale = ReturnScale(8, 0.9, 5.0, "cpu")
    generator = torch.Generator().manual_seed(0)
    returns, running = [], torch.zeros(8)
    for _ in range(300):
        rewards = 30 * torch.rand(8, generator=generator) - 5
        dones = torch.rand(8, generator=generator) < 0.05
        running = 0.9 * running + rewards
        returns.append(running.clone())
        running = torch.where(dones, 0.0, running)
        scale.step(rewards, dones.long())
    scale.merge()
    everything = torch.stack(returns)
    expected = max(everything.std(unbiased=False).item(), everything.abs().max().item() / 5.0)
    assert 1.0 / scale.factor.item() == pytest.approx(expected, rel=1e-4)
    assert (everything * scale.factor).abs().max().item() <= 5.0 + 1e-4


def test_rewards_that_are_all_zero_stay_zero():
    scale = ReturnScale(2, 0.9, 5.0, "cpu")
    scale.step(torch.zeros(2), torch.zeros(2))
    scale.merge()
    assert scale.factor.item() == 1.0


# --- options


def leaves(kind, prefix=""):
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", hint


@pytest.mark.parametrize("kind", [SacOptions, Td3Options])
def test_every_number_has_a_range(kind):
    for name, hint in leaves(kind):
        plain = hint in (float, int) or (typing.get_args(hint) and not hasattr(hint, "__metadata__"))
        assert not plain or name in ("replay.save", "temperature.target_entropy"), name


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"n_step": 9}, "n_step must be between 1 and 8"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1"),
        ({"tau": 0.0}, "tau must be above 0"),
        ({"replay": {"dtype": "float16"}}, "replay.dtype must be one of float32, bfloat16"),
        ({"policy_q": "max"}, "policy_q must be one of min, mean, first"),
        ({"action_bounds": "wide"}, "action_bounds must be a positive number"),
        ({"action_bounds": 0}, "action_bounds must be a positive number"),
        ({"action_bounds": [1, -1]}, "action_bounds must be a positive number"),
        ({"action_bounds": [[-1, 1], [2, 1]]}, "a rising pair an action, not [[-1, 1], [2, 1]]"),
        ({"action_bounds": [[0, float("inf")]]}, "action_bounds must be a positive number"),
        ({"num_agents": 3}, "unknown setting 'agent.algorithm.num_agents'"),
    ],
)
def test_a_wrong_option_gets_one_clear_line(values, says):
    with pytest.raises(UserError) as error:
        build(SacOptions, values)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("kind", "values", "says"),
    [
        ("SAC", {"warmup_steps": 5000}, "warmup_steps=5000 would never be over: the replay holds 2000"),
        ("SAC", {"gaussian": {"log_std_min": 1, "log_std_max": -1}}, "log_std_min=1 is above gaussian.log_std_max=-1"),
        ("TD3", {"noise": {"std_min": 0.5}}, "std_min=0.5 is above noise.std_max=0.4"),
    ],
)
def test_values_that_do_not_go_together_are_refused_before_anything_starts(kind, values, says):
    cfg = settings(kind, **values)
    with pytest.raises(UserError) as error:
        registry.find(cfg["algorithm"]).check(cfg, 16, 1)
    assert says in str(error.value)


def test_a_replay_smaller_than_a_roll_out_is_refused_before_anything_starts():
    cfg = settings(replay={"size": 100})
    with pytest.raises(UserError, match=r"replay.size must be at least 256, one roll-out of 64 environments, not 100"):
        registry.find(cfg["algorithm"]).check(cfg, 64, 1)


@pytest.mark.parametrize("name", ["sac", "sac_classic", "td3", "pql", "pql_d"])
def test_presets_hold_known_settings_only(name):
    preset = yaml.safe_load((AGENTS_DIR / f"{name}.yaml").read_text())
    row = registry.find(preset["algorithm"])
    for size in SIZES:
        own = at_size(preset["algorithm"], size)
        build(row.options, {key: value for key, value in own.items() if key != "class_name"})
    assert set(preset) == {"num_steps_per_env", "actor", "critic", "algorithm"}


def test_a_network_with_memory_becomes_an_mlp_and_it_is_said(capsys):
    cfg = settings()
    cfg["actor"] |= {"rnn_type": "lstm", "rnn_hidden_dim": 8}
    make(FinalEnv(16), cfg)
    assert "an MLP 16-16 takes the place of the task's LSTM" in capsys.readouterr().out


# --- no waiting


@pytest.mark.parametrize("name", KINDS)
def test_neither_steps_nor_gradient_steps_wait_for_the_device(name):
    alg, env = trained(name, 10)
    obs = env.get_observations()
    flags, ones = torch.zeros(16, dtype=torch.long), torch.ones(16)
    extras = {"time_outs": flags.bool(), "final_obs": obs, "broken_envs": flags.bool()}
    with NoWait():
        with torch.inference_mode():
            alg.act(obs)
            alg.process_env_step(obs, ones, flags, extras)
            alg.compute_returns(obs)
        alg.return_scale.merge()
        for _ in range(4):
            alg.gradient_step()


# --- resuming


def make_runner(folder, name, save=True, **more):
    torch.manual_seed(3)
    extra = {"gaussian": {"repeat": True}} if name == "SAC" else {}
    own = {"updates_per_step": 0.7, "replay": {"size": 600, "save": save}, **extra, **more}
    cfg = settings(name, **own) | {"save_interval": 4}
    return EpoRunner(SmoothEnv(16, seed=3), cfg, log_dir=str(folder))


@pytest.mark.parametrize("name", KINDS)
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, name):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    make_runner(whole, name).learn(14, init_at_random_ep_len=True)
    # the ring of 38 rows has gone round once
    make_runner(broken, name).learn(9, init_at_random_ep_len=True)
    resumed = make_runner(broken, name)
    torch.manual_seed(99)
    resumed.resume(str(broken / "model_8.pt"))
    resumed.learn(5, init_at_random_ep_len=True)
    contents = [torch.load(folder / "model_13.pt", weights_only=True) for folder in (whole, broken)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    assert contents[0]["parts"]["clock"]["gradient_steps"] > 20
    assert_same(*[torch.load(folder / "replay.pt", weights_only=True) for folder in (whole, broken)])


def test_a_kill_between_checkpoint_and_replay_loses_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "killed"
    make_runner(tmp_path / "whole", "SAC").learn(14)
    make_runner(folder, "SAC").learn(9)
    kept = tmp_path / "kept.pt"
    shutil.copyfile(folder / "replay.pt", kept)
    make_runner(folder, "SAC")
    # what a kill leaves behind right after model_8.pt has appeared: the new replay still waits, the old one is there
    (folder / "replay.pt").rename(folder / ".replay.pt.next")
    torch.save({"iter": 4, "state": {}}, folder / "replay.pt")
    resumed = make_runner(folder, "SAC")
    resumed.resume(str(folder / "model_8.pt"))
    assert resumed.alg.replay.num_transitions == 16 * 36
    resumed.learn(5)
    contents = [torch.load(path / "model_13.pt", weights_only=True) for path in (tmp_path / "whole", folder)]
    assert_same(*[content["actor_state_dict"] for content in contents])
    assert not (folder / ".replay.pt.next").exists()


@pytest.mark.parametrize("why", ["not saved", "of another checkpoint"])
def test_without_its_replay_a_resumed_run_says_so_and_fills_a_new_one(tmp_path, capsys, why):
    make_runner(tmp_path, "SAC", save=why != "not saved").learn(9)
    assert (tmp_path / "replay.pt").exists() == (why != "not saved")
    assert ("checkpoints leave the replay out" in capsys.readouterr().out) == (why == "not saved")
    resumed = make_runner(tmp_path, "SAC", save=why != "not saved")
    resumed.resume(str(tmp_path / ("model_8.pt" if why == "not saved" else "model_4.pt")))
    steps = resumed.alg.clock.gradient_steps
    resumed.learn(1)
    assert "128 transitions are collected before learning goes on" in capsys.readouterr().out
    assert not resumed.alg.warming_up, "the policy acts, not chance"
    assert resumed.alg.clock.gradient_steps == steps and resumed.alg.replay.num_transitions == 64
    resumed.learn(4)
    assert resumed.alg.clock.gradient_steps > steps


def test_a_new_run_from_a_trained_policy_explores_with_it(tmp_path):
    make_runner(tmp_path, "SAC").learn(9)
    fresh = make_runner(tmp_path / "new", "SAC")
    fresh.load(str(tmp_path / "model_8.pt"))
    fresh.alg.train_mode()
    content = torch.load(tmp_path / "model_8.pt", weights_only=True)
    assert not fresh.alg.warming_up and fresh.alg.replay.size == 0 and fresh.alg.clock.steps == 0
    assert_same(fresh.alg.actor.state_dict(), content["actor_state_dict"])
    assert_same(dict(fresh.alg.critic.state_dict()), dict(content["parts"]["critic"]))


def test_episodes_that_were_cut_off_do_not_continue_in_the_replay():
    alg, _ = trained("SAC", 5)
    with torch.inference_mode():
        alg.interrupt(forget=False)
    newest = torch.full((16,), alg.replay.size - 1)
    assert alg.replay.gather(newest, torch.arange(16), 1, 0.9).weights.tolist() == [0.0] * 16


def test_playing_takes_no_memory_for_a_replay():
    alg = make_untrained()
    alg.eval_mode()
    assert not alg.replay.allocated


def make_untrained():
    env = FinalEnv(16)
    from epo_lab.algorithms import SAC

    return SAC.construct_algorithm(env.get_observations(), env, settings(replay={"size": 10**12}), "cpu")


def test_a_replay_that_does_not_fit_is_refused_when_training_begins():
    with pytest.raises(UserError, match="a replay of 1,000,000,000,000 transitions needs"):
        make_untrained().train_mode()


def test_a_learner_is_abstract():
    with pytest.raises(TypeError):
        Learner(None, None, None, None)


def test_stock_runners_interface_is_complete():
    alg, env = trained("TD3", 3)
    rollout(alg, env, 4)
    losses = alg.update()
    assert {"critic", "q"} <= set(losses)
    other = make(env, settings("TD3"))
    other.load(alg.save(), None, True)
    assert_same(other.save(), alg.save())
    assert alg.get_policy() is alg.actor and alg.learning_rate == alg.options.learning_rate
