"""EPO as a whole: what it reduces to, and what its update does (invariants 1, 3, 9, 10, 12, 16, 18, 36, 45)."""

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage

from epo_lab.algorithms.on_policy.loss import mini_batch_loss
from epo_lab.base.errors import UserError
from epo_lab.population.evolution import Child, Generation, apply
from support.equality import assert_same
from support.toy_env import ToyEnv, batches, make, rollout, settings, train

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6, "evolution__trigger": "off"}


@pytest.mark.parametrize("recurrent", [None, "lstm", "gru"])
def test_one_agent_is_stock_ppo_to_the_last_bit(recurrent):
    results = []
    for name in ("PPO", "epo_lab.algorithms:EPO"):
        cfg = settings(recurrent)
        cfg["algorithm"]["class_name"] = name
        if name != "PPO":
            cfg["algorithm"]["num_agents"] = 1
        env = ToyEnv()
        algorithm = make(env, cfg)
        train(algorithm, env, 3)
        content = algorithm.save() | {"learning_rate": algorithm.learning_rate}
        content.pop("parts", None)
        results.append(content)
    assert_same(*results)


def test_stored_agent_ids_are_the_assignment_at_every_step():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION))
    rollout(algorithm, env, 8)
    stored = algorithm.storage.observations["agent_id"].squeeze(-1)
    assert torch.equal(stored, algorithm.agent_ids.expand(8, -1))
    assert torch.bincount(algorithm.agent_ids).tolist() == [4, 4, 4, 4]


def materialize(algorithm) -> RolloutStorage:
    """Return rsl_rl's storage with all columns, the relabelled ones copied out."""
    ours = algorithm.storage
    obs = ours.observations[0, ours.source].clone()
    stock = RolloutStorage("rl", ours.width, ours.num_transitions_per_env, obs, ours.actions_shape, "cpu")
    stock.observations = ours.observations[:, ours.source].clone()
    stock.observations["agent_id"] = ours.labels.view(1, -1, 1).expand(ours.num_transitions_per_env, -1, 1).clone()
    stock.actions, stock.dones = ours.actions[:, ours.source].clone(), ours.dones[:, ours.source].clone()
    for name in ("values", "returns", "advantages", "actions_log_prob"):
        setattr(stock, name, getattr(ours, name).clone())
    stock.distribution_params = tuple(p.clone() for p in ours.distribution_params)
    return stock


@pytest.mark.parametrize("sampling", ["envs", "symmetric", "all"])
def test_update_is_stock_ppos_on_the_augmented_batch(sampling):
    results = []
    for oracle in (False, True):
        env = ToyEnv()
        algorithm = make(env, settings(**POPULATION, off_policy__sampling=sampling))
        train(algorithm, env, 2)
        rollout(algorithm, env, 8)
        torch.manual_seed(7)
        if oracle:
            observations = algorithm.storage.observations
            algorithm.storage = materialize(algorithm)
            # rsl_rl updates the normalisers from the storage that it learned from; ours from the roll-out alone
            for model in (algorithm.actor, algorithm.critic):
                model.update_normalization = lambda obs: None
            PPO.update(algorithm)
            for model in (algorithm.actor, algorithm.critic):
                del model.update_normalization
                model.update_normalization(observations.flatten(0, 1))
        else:
            algorithm.update()
        results.append(PPO.save(algorithm) | {"rate": algorithm.learning_rate})
    assert_same(*results)


def gradient(algorithm, rows) -> dict[str, torch.Tensor]:
    """Return the gradient of the whole batch; ``rows`` picks the relabelled (True), the other (False) or all (None)."""
    (batch,) = algorithm.storage.mini_batch_generator(1, 1)
    algorithm.actor(batch.observations, stochastic_output=True)
    log_prob = algorithm.actor.get_output_log_prob(batch.actions)
    values = algorithm.critic(batch.observations)
    entropy = algorithm.actor.output_entropy
    ratio = torch.exp(log_prob - batch.old_actions_log_prob.squeeze(-1))
    advantages = batch.advantages.squeeze(-1)
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    per_row = -surrogate + (values - batch.returns).square().squeeze(-1) - 0.01 * entropy
    keep = torch.ones_like(per_row, dtype=torch.bool) if rows is None else batch.relabelled == rows
    algorithm.optimizer.zero_grad()
    (per_row * keep).mean().backward()
    named = [*algorithm.actor.named_parameters(), *((f"critic.{n}", p) for n, p in algorithm.critic.named_parameters())]
    return {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in named}


def test_relabelled_rows_teach_the_master_only():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION))
    train(algorithm, env, 2)
    rollout(algorithm, env, 8)
    gradients = gradient(algorithm, rows=True)
    for name in ("genes", "distribution.log_std_param"):
        assert gradients[name][1:].abs().max() == 0.0
        assert gradients[name][0].abs().max() > 0.0
    assert gradients["mlp.0.weight"].abs().max() > 0.0
    followers = gradient(algorithm, rows=False)["genes"]
    assert (followers.abs().max(dim=1).values > 0.0).all()


def test_weight_zero_is_the_update_without_relabelled_rows():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION))
    rollout(algorithm, env, 8)
    storage = algorithm.storage
    (batch,) = storage.mini_batch_generator(1, 1)
    algorithm.actor(batch.observations, stochastic_output=True)
    options = {"clip": 0.2, "value_coef": 1.0, "clip_value": False, "entropy_coef": 0.01}
    batch.weights = torch.where(batch.relabelled, 0.0, 1.0)
    parts = (
        algorithm.actor.get_output_log_prob(batch.actions),
        algorithm.critic(batch.observations),
        algorithm.actor.output_entropy,
    )
    algorithm.optimizer.zero_grad()
    mini_batch_loss(batch, *parts, **options).total.backward()
    weighted = algorithm.actor.genes.grad.clone()
    on_policy = gradient(algorithm, rows=False)["genes"]
    torch.testing.assert_close(weighted, on_policy, rtol=1e-4, atol=1e-7)


def test_advantages_of_the_augmented_batch_have_mean_zero_and_unit_deviation():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION))
    rollout(algorithm, env, 8)
    advantages = algorithm.storage.advantages
    assert advantages.shape == (8, 16 + 4, 1)
    assert abs(advantages.mean()) < 1e-5 and advantages.std() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_distance_between_agents_does_not_touch_the_learning_rate(recurrent):
    """Before the first gradient step the divergence of every row is zero, whoever's data it is."""
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION, genes__init_std=20.0))
    rollout(algorithm, env, 8)
    for batch in batches(algorithm, 4):
        with torch.no_grad():
            algorithm.actor(
                batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True
            )
        kl = algorithm.actor.get_kl_divergence(
            batch.old_distribution_params, algorithm.actor.output_distribution_params
        )
        assert kl.abs().max() < 1e-5
    assert algorithm._noted["Population/kl_to_master"] > 1e-3, "though the agents are far apart"


def test_without_the_genetic_algorithm_it_is_sapg():
    """The same options give the same parameters whether evolution is switched off or never comes."""
    results = []
    for options in ({"evolution__trigger": "off"}, {"evolution__trigger": "eq3", "evolution__warmup_steps": 10**9}):
        env = ToyEnv()
        algorithm = make(env, settings(**{**POPULATION, **options, "off_policy__sampling": "block"}))
        train(algorithm, env, 4)
        results.append(PPO.save(algorithm))
    assert_same(*results)


def test_entropy_coefficients_rise_from_the_master_to_the_last_follower():
    env = ToyEnv(num_envs=24)
    algorithm = make(env, settings(num_agents=6, entropy_coef=0.01, entropy_coef_scale=0.005))
    expected = [0.01 + 0.0025 * k / 5 for k in range(6)]
    torch.testing.assert_close(algorithm._entropy_coef, torch.tensor(expected))
    rollout(algorithm, env, 8)
    algorithm.update()


def test_entropy_coefficients_travel_with_the_gene():
    env = ToyEnv(num_envs=24)
    cfg = settings(num_agents=6, entropy_coef=0.01, entropy_coef_scale=0.005)
    algorithm = make(env, cfg)
    first = algorithm._entropy_coef.clone()
    genes = algorithm.genome.read().clone()
    children = [Child(5, (1, 2), genes[1]), Child(4, (2, 3), genes[2])]
    apply(Generation(children, {}, promoted=3), algorithm.genome)
    algorithm.settings_changed()
    # agent 3 leads now with a coefficient of its own; the former master is a parent of the second child
    expected = torch.stack(
        [first[3], first[1], first[2], first[0], (first[2] + first[0]) / 2, (first[1] + first[2]) / 2]
    )
    torch.testing.assert_close(algorithm._entropy_coef, expected)
    other = make(ToyEnv(num_envs=24), cfg)
    other.load(algorithm.save(), None, strict=True)
    assert torch.equal(other._entropy_coef, algorithm._entropy_coef)


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_genes_may_be_moved_by_the_policy_alone(recurrent):
    """The critic's gradient reaches the genes by default, and with ``actor`` it does not."""
    for gradient, moved in (("both", True), ("actor", False)):
        env = ToyEnv()
        algorithm = make(env, settings(recurrent, **POPULATION, genes__gradient=gradient))
        rollout(algorithm, env, 8)
        batch = next(iter(batches(algorithm, 4)))
        algorithm.actor.genes.grad = None
        values = algorithm.critic(batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[1])
        values.square().mean().backward()
        assert (algorithm.actor.genes.grad is not None) is moved


def test_agents_that_do_not_fit_are_refused_in_training_and_allowed_in_play():
    env = ToyEnv(num_envs=10)
    with pytest.raises(UserError, match="4 agents cannot share 10 environments"):
        make(env, settings(**POPULATION))
    cfg = settings(**POPULATION)
    from epo_lab.algorithms import EPO

    algorithm = EPO.construct_algorithm(env.get_observations(), env, cfg, "cpu")
    algorithm.eval_mode()
    assert algorithm.get_policy()(env.get_observations()).shape == (10, 3)


@pytest.mark.parametrize("num_agents", [64, 1024])
def test_large_populations_run(num_agents):
    env = ToyEnv(num_envs=2048)
    algorithm = make(env, settings(num_agents=num_agents, evolution__warmup_steps=0, evolution__interval_steps=1))
    train(algorithm, env, 3)
    assert len(algorithm.actor.genes) == num_agents


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("num_agents", 2000, "between 1 and 1024"),
        ("off_policy__clip", "soft", "one of fixed, mu"),
        ("evolution__mutation_sigma", -1.0, "at least 0"),
        ("fitness__source", "level", "must be 'return', 'success_or_return', 'extras:<key>'"),
        ("genes__dim", 0, "at least 1"),
        ("fitness__min_coverage", 0.0, "above 0"),
    ],
)
def test_options_are_checked(option, value, message):
    with pytest.raises(UserError, match=message):
        make(ToyEnv(), settings(**{"num_agents": 4, option: value}))


def test_a_non_finite_gradient_is_skipped_and_counted():
    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION, max_skipped_updates=1000))
    rollout(algorithm, env, 8)
    before = {name: p.clone() for name, p in algorithm.actor.named_parameters()}
    algorithm.storage.returns[0, 0] = float("nan")
    algorithm.update()
    skipped = algorithm.guard.skipped
    assert skipped == 2, "the one bad row is in one mini-batch of each of the two epochs"
    assert algorithm.scalars()["Guard/skipped_updates"] == 2.0
    assert all(torch.isfinite(p).all() for p in algorithm.actor.parameters())
    assert any(not torch.equal(p, before[name]) for name, p in algorithm.actor.named_parameters())


def test_too_many_non_finite_gradients_stop_the_run():
    from epo_lab.algorithms.on_policy.epo import NonFiniteUpdateError

    env = ToyEnv()
    algorithm = make(env, settings(**POPULATION, max_skipped_updates=3))
    rollout(algorithm, env, 8)
    algorithm.storage.returns[:] = float("nan")
    with pytest.raises(NonFiniteUpdateError, match="3 gradient steps in a row"):
        algorithm.update()
