"""CPO: followers that are drawn to the master's data, and a reward for being told apart (invariants 37, 38)."""

import math

import pytest
import torch

from epo_lab.algorithms.on_policy.cpo import LARGEST_FACTOR, LARGEST_WEIGHT, Attraction, Discriminator, Reverse
from epo_lab.algorithms.on_policy.loss import mini_batch_loss
from epo_lab.algorithms.on_policy.targets import gae_returns
from epo_lab.base.errors import UserError
from epo_lab.base.processes import mean_and_std
from epo_lab.configs.presets import agent_preset
from support.equality import assert_same
from support.toy_env import ToyEnv, batches, make, rollout, settings, train

pytestmark = pytest.mark.unit

K, N, T = 4, 16, 8
CPO = {
    "num_agents": K,
    "genes__dim": 6,
    "evolution__trigger": "off",
    "off_policy__sampling": "block",
    "diversity__attraction": 0.1,
}


class Recorder(ToyEnv):
    """Keeps the rewards and ends that it has handed out."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        self.record = [*getattr(self, "record", []), (rewards.clone(), dones.bool(), extras["time_outs"].clone())]
        return obs, rewards, dones, extras


def collected(recurrent=None, env=None, **options):
    env = env or ToyEnv()
    algorithm = make(env, settings(recurrent, **{**CPO, **options}))
    rollout(algorithm, env, T)
    return algorithm


def term(algorithm, kind):
    """Return the term of this class."""
    (found,) = [term for term in algorithm.terms if isinstance(term, kind)]
    return found


def attraction_loss(algorithm):
    """Return the loss of everything that attracts, as one batch."""
    attraction = term(algorithm, Attraction)
    attraction.begin(1, 1)
    return attraction.loss(None, None)


def masters_log_prob(algorithm, batch):
    """Return the log-probability that the master gives to all actions of a batch."""
    return Reverse(algorithm.actor, 1.0)._masters_log_prob(batch)


def test_without_attraction_it_is_sapg():
    results = []
    for name in ("sapg", "cpo"):
        env = ToyEnv(num_envs=24)
        algorithm = make(env, settings(**agent_preset(name)["algorithm"] | {"diversity__attraction": 0.0}))
        train(algorithm, env, 3)
        results.append(algorithm.save())
    assert_same(*results)


def test_weights_are_those_of_one_step_advantages_under_the_followers_critics(monkeypatch):
    env, scale = Recorder(), 0.01
    algorithm = make(env, settings(**CPO, reward_scale=scale, diversity__temperature=0.2))
    attraction, raw = term(algorithm, Attraction), []
    # what PPO's rows are before they are normalised, to join both by hand
    monkeypatch.setattr(
        attraction, "normalize", lambda *moments: raw.append(moments) or Attraction.normalize(attraction, *moments)
    )
    rollout(algorithm, env, T)
    ((mean, std),) = raw
    masters = (algorithm.agent_ids == 0).nonzero().flatten().tolist()
    observations = [*algorithm.storage.observations, env.get_observations()]
    columns = attraction._columns
    source, labels = columns.source.tolist(), columns.labels.tolist()
    assert sorted(zip(source, labels, strict=True)) == [(m, k) for m in masters for k in range(1, K)]
    weights = columns.fields["advantages"]

    def value(step, column, agent):
        obs = observations[step][column : column + 1].clone().set("agent_id", torch.tensor([[agent]]))
        with torch.no_grad():
            return algorithm.critic(obs).item()

    ppo = algorithm.storage.advantages * (std + 1e-8) + mean
    advantages = torch.zeros_like(weights)
    for index, (column, agent) in enumerate(zip(source, labels, strict=True)):
        for step, (rewards, dones, time_outs) in enumerate(env.record):
            after = 0.0 if dones[column] else 0.99 * value(step + 1, column, agent)
            # an episode whose time is over goes on in value, as rsl_rl has it
            after += 0.99 * value(step, column, agent) if time_outs[column] else 0.0
            advantages[step, index] = scale * rewards[column].item() + after - value(step, column, agent)
    # mean and deviation are those of PPO's rows and these together (the release normalises one array)
    joint = torch.cat([ppo.flatten(), advantages.flatten()])
    assert (mean.item(), std.item()) == pytest.approx((joint.mean().item(), joint.std().item()), rel=1e-4, abs=1e-6)
    expected = ((advantages - joint.mean()) / (joint.std() + 1e-8) / 0.2).exp().clamp(max=LARGEST_WEIGHT)
    torch.testing.assert_close(weights, expected, rtol=2e-2, atol=1e-6)
    assert weights.max() == LARGEST_WEIGHT and weights.min() < 1.0


def test_weights_have_no_unit():
    """Rewards and values a hundred times as large give the same weights."""
    found = []
    for factor in (1.0, 100.0):
        torch.manual_seed(3)
        algorithm = collected()
        attraction, st = term(algorithm, Attraction), algorithm.storage
        raw = torch.randn(attraction._columns.fields["advantages"].shape)
        attraction._columns.fields["advantages"].copy_(factor * raw)
        mean, std = mean_and_std(factor * st.advantages, factor * raw)
        attraction.normalize(mean, std)
        found.append(attraction._columns.fields["advantages"].clone())
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-6)


def test_without_a_preference_the_loss_is_the_likelihood_of_the_masters_actions():
    algorithm = collected(diversity__temperature=1e9)
    st, loss = algorithm.storage, attraction_loss(algorithm)
    columns = (algorithm.agent_ids == 0).nonzero().flatten()
    expected = 0.0
    for agent in range(1, K):
        obs = st.observations[:, columns].flatten(0, 1)
        obs["agent_id"] = torch.full((len(columns) * T, 1), agent)
        algorithm.actor(obs, stochastic_output=True)
        normal = torch.distributions.Normal(algorithm.actor.output_mean, algorithm.actor.output_std)
        expected -= normal.log_prob(st.actions[:, columns].flatten(0, 1)).sum(dim=-1).mean().item()
    # all rows count alike: the term's, K - 1 blocks, next to PPO's
    mean, blocks = expected / (K - 1), st.width / len(columns)
    assert loss.item() == pytest.approx(0.1 * (K - 1) / blocks * mean, rel=1e-5)


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_followers_like_the_master_repeat_its_probabilities(recurrent):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **CPO, diversity__temperature=1e9))
    with torch.no_grad():
        algorithm.actor.genes[:] = algorithm.actor.genes[0]
    for _ in range(2):
        algorithm.storage.clear()
        rollout(algorithm, env, T)
    columns = (algorithm.agent_ids == 0).nonzero().flatten()
    expected = -algorithm.storage.actions_log_prob[:, columns].mean().item()
    weight = 0.1 * (K - 1) * len(columns) / algorithm.storage.width
    assert attraction_loss(algorithm).item() == pytest.approx(weight * expected, rel=1e-4)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_the_master_and_all_critics_are_left_alone(recurrent):
    algorithm = collected(recurrent)
    algorithm.optimizer.zero_grad()
    attraction_loss(algorithm).backward()
    for table in (algorithm.actor.genes, algorithm.actor.distribution.log_std_param):
        moved = table.grad.abs().sum(dim=1) > 0
        assert moved.tolist() == [False] + [True] * (K - 1)
    assert all(parameter.grad is None for parameter in algorithm.critic.parameters())


def test_attraction_draws_followers_to_the_master():
    """With a weight of 5, for every seed that was tried; with 0.1 two of three runs of this length showed nothing."""
    distances = []
    for attraction in (0.0, 5.0):
        env = ToyEnv(num_envs=64)
        algorithm = make(env, settings(**CPO | {"diversity__attraction": attraction}))
        found = []
        for _ in range(15):
            train(algorithm, env, 1)
            found.append(algorithm.scalars()["Population/kl_to_master"])
        distances.append(sum(found[-8:]) / 8)
    assert distances[1] < 0.8 * distances[0], distances
    assert {"Population/attraction_loss", "Population/attraction_weight"} <= set(algorithm.scalars())


def test_the_attraction_adapts_to_hold_followers_in_a_band():
    """A weak attraction grows until the followers are as near as wished; a resumed run goes on with what it grew to."""
    distances = []
    for band in ((), (0.005, 0.02)):
        env = ToyEnv(num_envs=64)
        algorithm = make(env, settings(**CPO | {"diversity__attraction": 0.01, "diversity__kl_band": band}))
        found = []
        for _ in range(16):
            train(algorithm, env, 1)
            found.append(algorithm.scalars()["Population/kl_to_master"])
        distances.append(sum(found[-5:]) / 5)
    assert distances[1] < 0.8 * distances[0], distances
    assert algorithm.scalars()["Population/attraction_factor"] > 5.0
    other = make(ToyEnv(num_envs=64), settings(**CPO | {"diversity__attraction": 0.01, "diversity__kl_band": band}))
    other.load(algorithm.save(), None, strict=True)
    assert term(other, Attraction)._factor == term(algorithm, Attraction)._factor
    # too near: the attraction lets go, down to its least
    attraction = term(other, Attraction)
    for _ in range(200):
        attraction.follow(0.001)
    assert attraction._factor == 1.0 / LARGEST_FACTOR


@pytest.mark.parametrize(
    ("band", "attraction"), [((1.0, 0.1), 0.1), ((0.1,), 0.1), ((0.1, 1.0), 0.0), ((0.1, 0.5, 1.0), 0.1)]
)
def test_a_band_that_cannot_be_held_is_refused(band, attraction):
    with pytest.raises(UserError, match="kl_band must be two divergences"):
        make(ToyEnv(), settings(**CPO | {"diversity__attraction": attraction, "diversity__kl_band": band}))


def test_many_followers_share_the_masters_columns():
    algorithm = make(ToyEnv(num_envs=160), settings(**CPO | {"num_agents": 10}))
    rollout(algorithm, ToyEnv(num_envs=160), T)
    columns = term(algorithm, Attraction)._columns
    assert torch.bincount(columns.labels).tolist() == [0] + [1] * 9
    assert (algorithm.agent_ids[columns.source] == 0).all()


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_distance_from_the_master_is_taken_off_the_followers_advantages(recurrent):
    algorithm = collected(recurrent)
    (batch,) = batches(algorithm, 1)
    found = masters_log_prob(algorithm, batch)
    own = (batch.labels == 0) & ~batch.relabelled
    torch.testing.assert_close(found[own], batch.old_actions_log_prob.squeeze(-1)[own], rtol=1e-4, atol=1e-5)
    if recurrent is None:
        rows = batch.observations.clone().set("agent_id", torch.zeros(len(batch.labels), 1, dtype=torch.long))
        algorithm.actor(rows, stochastic_output=True)
        normal = torch.distributions.Normal(algorithm.actor.output_mean, algorithm.actor.output_std)
        torch.testing.assert_close(found, normal.log_prob(batch.actions).sum(dim=-1), rtol=1e-4, atol=1e-4)
        assert (found - batch.old_actions_log_prob.squeeze(-1))[~own].abs().max() > 0.1
    # with equal policies nothing is taken off
    results = []
    for reverse in (0.0, 0.5):
        env = ToyEnv()
        algorithm = make(env, settings(recurrent, **CPO, diversity__reverse=reverse, num_learning_epochs=1))
        algorithm.num_mini_batches = 1
        with torch.no_grad():
            algorithm.actor.genes[:] = algorithm.actor.genes[0]
        rollout(algorithm, env, T)
        torch.manual_seed(5)
        algorithm.update()
        results.append(torch.cat([p.detach().flatten() for p in algorithm.actor.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_what_is_taken_off_goes_by_the_ratio_and_spares_the_others(monkeypatch):
    seen = []

    def watch(batch, log_prob, *args, **options):
        seen.append((batch, log_prob.detach()))
        return mini_batch_loss(batch, log_prob, *args, **options)

    monkeypatch.setattr("epo_lab.algorithms.on_policy.epo.mini_batch_loss", watch)
    for reverse in (0.0, 0.5):
        env = ToyEnv()
        algorithm = make(env, settings(**CPO, diversity__reverse=reverse, num_learning_epochs=1))
        algorithm.num_mini_batches = 1
        rollout(algorithm, env, T)
        torch.manual_seed(5)
        masters = masters_log_prob(algorithm, next(batches(algorithm, 1)))
        torch.manual_seed(5)
        algorithm.update()
    (plain, log_prob), (changed, _) = seen
    own = (plain.labels > 0) & ~plain.relabelled
    expected = torch.where(own, 0.5 * (log_prob - masters), 0.0)
    torch.testing.assert_close((plain.advantages - changed.advantages).squeeze(-1), expected, rtol=1e-4, atol=1e-5)
    assert own.any() and (~own).any()


def test_one_agent_and_a_player_ignore_what_followers_need():
    env = ToyEnv()
    alone = make(
        env, settings(num_agents=1, diversity__reverse=0.5, diversity__attraction=0.1, diversity__adversarial=0.1)
    )
    train(alone, env, 1)
    trained = make(ToyEnv(), settings(**CPO, diversity__adversarial=0.1, diversity__classifier_dims=(7,)))
    player = make(ToyEnv(), settings(**CPO, diversity__adversarial=0.1))
    player.load({**trained.save(), "iter": 0}, {"actor": True}, True)
    assert_same(player.actor.state_dict(), trained.actor.state_dict())


def data(tell, rows=4000):
    generator = torch.Generator().manual_seed(0)
    agents = torch.randint(0, K, (rows,), generator=generator)
    obs, actions = torch.randn(rows, 5, generator=generator), torch.randn(rows, 3, generator=generator)
    actions[:, 0] += tell * agents
    return torch.cat([obs, actions], dim=-1), agents


@pytest.mark.parametrize("tell", [0.0, 3.0])
def test_chance_is_all_there_is_if_agents_act_alike(tell):
    network = make(ToyEnv(), settings(**CPO, diversity__adversarial=0.1, learning_rate=1e-2))
    network = term(network, Discriminator)
    inputs, agents = data(tell)
    losses = [network.fit(inputs, agents, num_mini_batches=4).item() for _ in range(10)]
    if tell:
        assert losses[-1] < 0.5 * math.log(K)
        known = network.known(inputs, agents)
        assert known.mean() > -0.5 * math.log(K) and (known <= 0).all()
    else:
        assert losses[-1] == pytest.approx(math.log(K), rel=0.03)


def test_followers_alone_are_paid_and_nobody_else_learns_from_it():
    env = Recorder()
    algorithm = make(env, settings(**CPO, diversity__adversarial=0.5, reward_scale=0.1))
    rollout(algorithm, env, T)
    st = algorithm.storage
    followers = algorithm.agent_ids > 0
    bonus = term(algorithm, Discriminator).reward()
    assert (bonus[:, followers] < 0).all() and (bonus[:, ~followers] == 0).all()
    # step by step it is the same
    network = term(algorithm, Discriminator)
    for step in range(T):
        known = network.known(network._inputs(st.observations[step], st.actions[step]), algorithm.agent_ids)
        torch.testing.assert_close(bonus[step, followers, 0], 0.5 * known[followers])
    paid = torch.stack([0.1 * rewards for rewards, _, _ in env.record]).unsqueeze(-1)
    calm = ~st.time_outs
    torch.testing.assert_close(st.rewards[calm], paid[calm], rtol=1e-5, atol=1e-6)
    # who acted learns from it
    with torch.inference_mode():
        last_values = algorithm.critic(algorithm._label(env.get_observations()))
    returns = torch.zeros_like(st.rewards)
    gae_returns(st.rewards + bonus, st.values[:, :N], st.dones, last_values, 0.99, algorithm.lam, out=returns)
    torch.testing.assert_close(st.returns[:, :N], returns, rtol=1e-4, atol=1e-5)
    # relabelled as the master, a follower's column is worth what the task pays
    column = followers.nonzero().flatten()[:1]
    last_obs = algorithm._label(env.get_observations())
    with torch.inference_mode():
        worth = algorithm._value_as(column, torch.zeros(1, dtype=torch.long), last_obs, st.rewards)
    step = next(t for t in range(T - 1) if not env.record[t][1][column])
    expected = paid[step, column] + 0.99 * worth.values[step + 1]
    torch.testing.assert_close(worth.targets[step], expected, rtol=1e-5, atol=1e-6)
    losses = algorithm.update()
    assert all(math.isfinite(value) for value in losses.values())
    assert algorithm.scalars()["Population/discriminator_loss"] == pytest.approx(math.log(K), rel=0.3)
