"""The master's off-policy data (invariants 6, 11, 13, 14, 15)."""

import pytest
import torch

from epo_lab.algorithms.on_policy.relabel import choose_columns, evaluate, num_relabelled
from epo_lab.algorithms.on_policy.targets import gae_returns
from epo_lab.models.hidden import copy_state
from epo_lab.population.assignment import assign_agents
from support.equality import assert_same
from support.toy_env import ToyEnv, batches, make, rollout, settings, train

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6, "evolution__trigger": "off"}


def make_identical(algorithm) -> None:
    """Give all agents the master's gene; the action noise is equal from the start."""
    with torch.no_grad():
        algorithm.actor.genes[:] = algorithm.actor.genes[0]


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_identical_agents_have_ratio_one_and_one_step_advantages(recurrent, monkeypatch):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, normalize_advantage_per_mini_batch=True))
    make_identical(algorithm)
    seen = {}
    monkeypatch.setattr(
        "epo_lab.algorithms.on_policy.epo.offpolicy_scalars", lambda mu, *_: seen.update(mu=mu.clone()) or {}
    )
    rollout(algorithm, env, 8)
    st, n = algorithm.storage, 16
    torch.testing.assert_close(seen["mu"], torch.ones_like(seen["mu"]), rtol=1e-5, atol=1e-6)
    columns = st.source[n:]
    torch.testing.assert_close(st.values[:, n:], st.values[:, columns], rtol=1e-5, atol=1e-6)
    # generalised advantages with lambda = 0 of the columns that were copied; the value after the last step is not
    # stored, so the last row is left out
    expected = torch.zeros_like(st.returns[:, :n])
    gae_returns(st.rewards, st.values[:, :n], st.dones, torch.zeros(n, 1), 0.99, 0.0, out=expected)
    one_step = (expected - st.values[:, :n])[:-1, columns]
    torch.testing.assert_close(st.advantages[:-1, n:], one_step, rtol=1e-4, atol=1e-5)


def test_mu_mode_weights_advantages_and_keeps_the_masters_old_policy():
    storages = {}
    for clip in ("fixed", "mu"):
        env = ToyEnv()
        algorithm = make(env, settings(**POPULATION, off_policy__clip=clip, off_policy__mu_max=1.5))
        rollout(algorithm, env, 8)
        storages[clip] = algorithm.storage
    fixed, mu = storages["fixed"], storages["mu"]
    assert torch.equal(fixed.source, mu.source)
    weight = torch.exp(mu.actions_log_prob[:, 16:] - fixed.actions_log_prob[:, 16:]).clamp(max=1.5)
    assert weight.max() == 1.5 and weight.min() < 1.0
    torch.testing.assert_close(mu.importance[:, 16:], weight)
    assert (mu.importance[:, :16] == 1).all() and fixed.importance is None
    torch.testing.assert_close(mu.advantages, fixed.advantages)
    assert torch.equal(fixed.actions_log_prob[:, 16:], fixed.actions_log_prob[:, fixed.source[16:]])


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_a_mini_batch_is_normalised_before_it_is_weighted(recurrent):
    options = {"off_policy__clip": "mu", "normalize_advantage_per_mini_batch": True}
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, **options))
    rollout(algorithm, env, 8)
    batch = next(iter(batches(algorithm, 2)))
    raw, weight = batch.advantages.clone(), batch.importance.clone()
    algorithm._mini_batch(0, batch)
    expected = weight * (raw - raw.mean()) / (raw.std() + 1e-8)
    torch.testing.assert_close(batch.advantages, expected)
    assert (weight != 1).any()


# --- which columns


@pytest.mark.parametrize(
    ("sampling", "expected"), [("envs", 8), ("block", 8), ("all", 40), ("symmetric", 48), ("none", 0)]
)
def test_number_of_relabelled_columns(sampling, expected):
    agents = assign_agents(48, 6, seed=1)
    assert num_relabelled(agents, 6, sampling) == expected


def test_drawn_columns_are_followers_without_repetition_and_equally_often():
    agents, generator = assign_agents(48, 6, seed=1), torch.Generator().manual_seed(0)
    hits = torch.zeros(48)
    for _ in range(2000):
        columns, labels = choose_columns(agents, 6, "envs", 8, generator)
        assert len(columns.unique()) == 8 and (labels == 0).all()
        hits[columns] += 1
    assert hits[agents == 0].sum() == 0
    followers = hits[agents > 0]
    chi_square = ((followers - 400.0) ** 2 / 400.0).sum()
    # 40 columns, each drawn with probability 1/5: mean 39 * (1 - 1/5), and far below 80
    assert chi_square < 80.0


def test_block_takes_whole_followers():
    agents, generator = assign_agents(48, 6, seed=1), torch.Generator().manual_seed(0)
    chosen = set()
    for _ in range(50):
        columns, _ = choose_columns(agents, 6, "block", 8, generator)
        (agent,) = agents[columns].unique().tolist()
        chosen.add(agent)
    assert chosen == {1, 2, 3, 4, 5}
    columns, _ = choose_columns(agents, 6, "block", 24, generator)
    assert len(agents[columns].unique()) == 3


def test_symmetric_gives_every_column_to_another_agent():
    agents, generator = assign_agents(48, 6, seed=1), torch.Generator().manual_seed(0)
    for _ in range(20):
        columns, labels = choose_columns(agents, 6, "symmetric", 48, generator)
        assert (labels != agents[columns]).all()
        assert torch.bincount(labels).tolist() == [8] * 6


# --- values and states


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_evaluation_under_their_own_labels_reproduces_what_was_stored(recurrent):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION))
    train(algorithm, env, 2)
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(8):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
        st = algorithm.storage
        columns = torch.tensor([3, 7, 11, 0])
        before = copy_state(algorithm.critic.get_hidden_state())
        again = evaluate(
            algorithm.actor,
            algorithm.critic,
            st.observations[:, columns],
            st.actions[:, columns],
            st.dones[:, columns],
            obs[columns],
            algorithm.agent_ids[columns],
            st.hidden_of(columns),
        )
    torch.testing.assert_close(again.values, st.values[:, columns], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(again.log_prob, st.actions_log_prob[:, columns], rtol=1e-6, atol=1e-6)
    for new, old in zip(again.params, st.distribution_params, strict=True):
        torch.testing.assert_close(new, old[:, columns], rtol=1e-6, atol=1e-6)
    # the live state is as it was
    assert_same(before, algorithm.critic.get_hidden_state())


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_first_mini_batch_has_ratio_one_on_every_row(recurrent):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, off_policy__clip="mu"))
    train(algorithm, env, 2)
    rollout(algorithm, env, 8)
    rows = 0
    for batch in batches(algorithm, 4):
        with torch.no_grad():
            algorithm.actor(
                batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True
            )
            values = algorithm.critic(batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[1])
        log_prob = algorithm.actor.get_output_log_prob(batch.actions)
        ratio = torch.exp(log_prob - batch.old_actions_log_prob.squeeze(-1))
        torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=1e-5)
        torch.testing.assert_close(values, batch.values, rtol=1e-4, atol=1e-5)
        rows += ratio.numel()
    assert rows == 8 * 20


def test_stored_states_are_the_followers_at_every_step():
    env = ToyEnv()
    algorithm = make(env, settings("lstm", **POPULATION, off_policy__hidden="stored"))
    train(algorithm, env, 2)
    rollout(algorithm, env, 8)
    st = algorithm.storage
    assert len(st.hidden_of(torch.tensor([1]))) == 8
    make_identical(algorithm)
    algorithm.storage.clear()
    rollout(algorithm, env, 8)
    torch.testing.assert_close(st.values[:, 16:], st.values[:, st.source[16:]], rtol=1e-5, atol=1e-6)


def test_time_outs_are_bootstrapped_with_the_masters_value_and_falls_are_not():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION, off_policy__sampling="all"))
    env.episode_length_buf[:] = torch.arange(16) + 4
    rollout(algorithm, env, 8)
    st, n = algorithm.storage, 16
    columns = st.source[n:]
    time_outs, dones = st.time_outs[:, columns].squeeze(-1), st.dones[:, columns].squeeze(-1).bool()
    falls = dones & ~time_outs
    assert time_outs.sum() > 3 and falls.sum() > 0
    raw = st.rewards[:, columns] - 0.99 * st.time_outs[:, columns] * st.values[:, columns]
    masters = st.values[:, n:]
    torch.testing.assert_close(st.returns[:, n:][time_outs], (raw + 0.99 * masters)[time_outs], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(st.returns[:, n:][falls], raw[falls], rtol=1e-5, atol=1e-6)
    running = ~dones[:-1]
    expected = raw[:-1] + 0.99 * masters[1:]
    torch.testing.assert_close(st.returns[:-1, n:][running], expected[running], rtol=1e-5, atol=1e-6)
