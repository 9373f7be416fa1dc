"""Evolution strategies, the cross-entropy method and automatic mutation tuning against independent computations."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.options import build
from epo_lab.population.amt import AmtCfg, MutationRate, amt_step, smooth_l1
from epo_lab.population.cem import CemCfg, CrossEntropy, parent_weights
from epo_lab.population.es import EsCfg, EvolutionStrategy, centred_ranks, draw_noise, replay
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import Fitness
from epo_lab.population.winners import mix, soft_winners

pytestmark = pytest.mark.unit

SHAPES = [torch.Size([6, 4]), torch.Size([6]), torch.Size([2, 6]), torch.Size([2])]
SIZE = 24 + 6 + 12 + 2
TARGET = torch.linspace(-1.0, 1.0, SIZE, dtype=torch.float64)


def strategy(num_members: int = 10, **settings) -> EvolutionStrategy:
    first = torch.zeros(SIZE, dtype=torch.float64)
    return EvolutionStrategy(EsCfg(**settings), first, SHAPES, num_members, seed=7)


def quadratic(rows: torch.Tensor) -> torch.Tensor:
    return -(rows - TARGET).square().sum(dim=-1)


class Rows:
    """A genome of plain rows."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows.clone()

    def read(self, slots=None):
        return self.rows if slots is None else self.rows[list(slots)]

    def write(self, slots, rows):
        self.rows[list(slots)] = rows

    def inherit(self, slot, parents):
        pass


def known(values: torch.Tensor) -> Fitness:
    return Fitness(values, torch.ones_like(values), torch.zeros_like(values), torch.ones(len(values), dtype=torch.bool))


# --- evolution strategy


@pytest.mark.parametrize("mirrored", [True, False])
def test_theta_moves_by_the_formula(mirrored):
    es = strategy(sigma=0.05, learning_rate=0.3, mirrored=mirrored)
    for _ in range(3):
        rows, noise, before = es.ask().numpy(), es.noise().numpy(), es.theta.numpy().copy()
        assert np.abs(rows - (before + 0.05 * noise)).max() < 1e-15
        fitness = quadratic(es.ask())
        ranks = (rankdata(fitness.numpy()) - 1.0) / 9.0 - 0.5
        step = sum(rank * eps for rank, eps in zip(ranks, noise, strict=True)) * 0.3 / (10 * 0.05)
        es.tell(fitness)
        assert np.abs(es.theta.numpy() - (before + step)).max() < 1e-12
    assert es.number == 3


def test_adam_moves_theta_by_its_formula():
    es = strategy(optimizer="adam", sigma=0.05, learning_rate=0.02)
    theta, first, second = np.zeros(SIZE), np.zeros(SIZE), np.zeros(SIZE)
    for number in range(1, 6):
        noise, fitness = es.noise().numpy(), quadratic(es.ask())
        ranks = (rankdata(fitness.numpy()) - 1.0) / 9.0 - 0.5
        direction = ranks @ noise / (10 * 0.05)
        first = 0.9 * first + 0.1 * direction
        second = 0.999 * second + 0.001 * direction**2
        theta += 0.02 * (first / (1 - 0.9**number)) / (np.sqrt(second / (1 - 0.999**number)) + 1e-8)
        es.tell(fitness)
        assert np.abs(es.theta.numpy() - theta).max() < 1e-12


def test_mirrored_noise_sums_to_zero():
    noise = strategy().noise()
    assert torch.equal(noise[:5], -noise[5:]) and noise.sum(dim=0).abs().max() < 1e-14
    assert strategy(mirrored=False).noise().sum(dim=0).abs().min() > 1e-6


def test_noise_is_that_of_seed_and_number():
    one, two = strategy(), strategy()
    fitness = torch.arange(10.0, dtype=torch.float64)
    first = one.noise()
    assert torch.equal(one.noise(), first), "asking again draws the same"
    one.tell(fitness)
    two.tell(-fitness)
    assert torch.equal(one.noise(), two.noise()), "whatever happened before"
    assert not torch.equal(one.noise(), first)
    other = EvolutionStrategy(EsCfg(), one.theta, SHAPES, 10, seed=8)
    assert not torch.equal(other.noise(), first)


def test_ranks_do_not_care_about_the_scale_of_the_fitness():
    fitness = torch.tensor([3.0, -1.0, 0.5, 0.5, 9.0, -7.0], dtype=torch.float64)
    ranks = centred_ranks(fitness)
    assert np.allclose(ranks.numpy(), (rankdata(fitness.numpy()) - 1) / 5 - 0.5, atol=0)
    assert torch.equal(centred_ranks(fitness.exp()), ranks)
    assert torch.equal(centred_ranks(100.0 * fitness - 4000.0), ranks)
    assert abs(ranks.sum()) < 1e-15 and ranks.max() == 0.5 and ranks.min() == -0.5


def test_noise_of_low_rank_has_its_rank_and_variance():
    shapes = [torch.Size([20, 30]), torch.Size([20])]
    noise = draw_noise(4000, shapes, 3, False, torch.Generator().manual_seed(0))
    matrices = noise[:, :600].view(4000, 20, 30)
    assert torch.linalg.matrix_rank(matrices[:50]).tolist() == [3] * 50
    assert (
        torch.linalg.matrix_rank(draw_noise(5, shapes, 0, False, torch.Generator())[:, :600].view(5, 20, 30)).min()
        == 20
    )
    assert abs(float(noise.mean())) < 0.01
    assert noise.square().mean(dim=0).sub(1.0).abs().max() < 0.2
    assert abs(float(noise.square().mean()) - 1.0) < 0.02
    # elements are not correlated with each other
    assert abs(float((matrices[:, 0, 0] * matrices[:, 0, 1]).mean())) < 0.08


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adam"}, {"noise_rank": 1}, {"mirrored": False, "zeta": 1e-3}])
def test_a_lineage_of_seeds_and_returns_repeats_the_run(settings):
    es = strategy(sigma=0.1, learning_rate=0.1, **settings)
    genome, records = Rows(es.ask()), []
    for number in range(12):
        generation = es.propose(known(quadratic(genome.read())), genome, Clock(number, 10 * number))
        apply(generation, genome)
        records.append(generation.record)
        assert torch.equal(genome.read(), es.ask())
    assert records[5]["iteration"] == 5 and len(records[5]["fitness"]) == 10
    assert "theta" not in records[0], "no weights"
    assert torch.equal(replay(torch.zeros(SIZE, dtype=torch.float64), SHAPES, records), es.theta)
    assert float(quadratic(es.theta)) > float(quadratic(torch.zeros(SIZE)))


def test_it_goes_on_from_its_state():
    one, two = strategy(optimizer="adam", zeta=1e-2), strategy(optimizer="adam", zeta=1e-2)
    for _ in range(4):
        one.tell(quadratic(one.ask()))
    two.load_state_dict(one.state_dict())
    for _ in range(3):
        for es in (one, two):
            es.tell(quadratic(es.ask()))
    assert torch.equal(one.theta, two.theta) and one.sigma == two.sigma


def test_nobody_is_replaced_before_all_are_evaluated():
    es = strategy()
    fitness = known(torch.zeros(10, dtype=torch.float64))
    fitness.evaluated[3] = False
    assert es.propose(fitness, Rows(es.ask()), Clock()) is None and es.number == 0


def test_it_climbs_a_quadratic():
    es = strategy(50, sigma=0.05, learning_rate=0.05)
    for _ in range(300):
        es.tell(quadratic(es.ask()))
    assert float(quadratic(es.theta)) > 0.05 * float(quadratic(torch.zeros(SIZE)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sigma": 0.0}, r"algorithm\.es\.sigma must be positive"),
        ({"learning_rate": -1.0}, r"es\.learning_rate must be positive"),
        ({"optimizer": "lion"}, r"es\.optimizer must be one of sgd, adam"),
        ({"noise_rank": -1}, r"es\.noise_rank must be at least 0"),
        ({"zeta": -1.0}, r"es\.zeta must be at least 0"),
        ({"amt_fitness": "odd"}, r"es\.amt_fitness must be one of normalised, raw"),
    ],
)
def test_values_without_sense_are_refused(settings, says):
    with pytest.raises(UserError, match=says):
        build(EsCfg, settings, "agent.algorithm.es")


def test_mirrored_noise_needs_pairs():
    with pytest.raises(UserError, match=r"even number of members, not 9: set agent\.algorithm\.es\.mirrored=false"):
        strategy(9)


# --- cross-entropy method


def cem_by_hand(generations: int, ask) -> tuple[np.ndarray, np.ndarray]:
    """The paper's update in numpy: log weights of the best half, old mean in the variance, decaying damping."""
    mean, variance, damping = np.zeros(SIZE), np.full(SIZE, 1e-3), 1e-3
    weights = np.array([math.log(6 / rank) for rank in range(1, 6)])
    weights /= weights.sum()
    for number in range(generations):
        rows = ask(number, mean, variance)
        order = np.argsort([((row - TARGET.numpy()) ** 2).sum() for row in rows], kind="stable")[:5]
        damping = damping * 0.95 + 0.05 * 1e-5
        variance = sum(w * (rows[i] - mean) ** 2 for w, i in zip(weights, order, strict=True)) + damping
        mean = sum(w * rows[i] for w, i in zip(weights, order, strict=True))
    return mean, variance


def test_cem_equals_the_formulas_in_numpy():
    cem = CrossEntropy(CemCfg(), torch.zeros(SIZE, dtype=torch.float64), 10, seed=3)
    asked = []
    for _ in range(20):
        rows = cem.ask()
        asked.append(rows.numpy())
        cem.tell(rows, quadratic(rows))
    mean, variance = cem_by_hand(20, lambda number, *_: asked[number])
    assert np.abs(cem.mean.numpy() - mean).max() < 1e-12
    assert np.abs(cem.variance.numpy() - variance).max() < 1e-12


def test_cem_draws_from_its_mean_and_variance():
    cem = CrossEntropy(CemCfg(), torch.zeros(SIZE, dtype=torch.float64), 4000, seed=3)
    cem.mean, cem.variance = 3.0 * TARGET, TARGET.square() + 0.1
    rows = cem.ask()
    assert torch.equal(rows, cem.ask())
    assert (rows.mean(dim=0) - cem.mean).abs().max() < 0.08
    assert (rows.var(dim=0) / cem.variance - 1.0).abs().max() < 0.12


def test_cem_reaches_what_the_numpy_version_reaches_on_a_quadratic():
    """In distribution: the same problem with other random numbers."""
    ours, theirs = [], []
    for seed in range(12):
        cem = CrossEntropy(CemCfg(), torch.zeros(SIZE, dtype=torch.float64), 10, seed=seed)
        for _ in range(60):
            rows = cem.ask()
            cem.tell(rows, quadratic(rows))
        ours.append(float(quadratic(cem.mean)))
        random = np.random.default_rng(seed)
        mean, _ = cem_by_hand(
            60, lambda _, mean, variance, random=random: mean + np.sqrt(variance) * random.standard_normal((10, SIZE))
        )
        theirs.append(-float(((mean - TARGET.numpy()) ** 2).sum()))
    spread = math.hypot(np.std(ours), np.std(theirs)) / math.sqrt(12)
    assert abs(np.mean(ours) - np.mean(theirs)) < 3.0 * spread
    assert np.mean(ours) > 0.7 * float(quadratic(torch.zeros(SIZE)))


def test_cem_weights_sum_to_one_and_fall():
    weights = parent_weights(5).numpy()
    assert np.isclose(weights.sum(), 1.0) and (np.diff(weights) < 0).all()
    assert np.isclose(weights[0] / weights[4], math.log(6) / math.log(6 / 5))


def test_cem_tells_what_members_became_and_goes_on_from_its_state():
    one = CrossEntropy(CemCfg(parents=2), torch.zeros(SIZE, dtype=torch.float64), 6, seed=1)
    genome = Rows(one.ask())
    genome.rows[2] = TARGET  # a gradient took it there
    generation = one.propose(known(quadratic(genome.read())), genome, Clock(4, 40))
    assert float(quadratic(one.mean)) > 0.5 * float(quadratic(torch.zeros(SIZE)))
    two = CrossEntropy(CemCfg(parents=2), torch.ones(SIZE, dtype=torch.float64), 6, seed=9)
    two.load_state_dict(one.state_dict())
    assert torch.equal(two.ask(), one.ask())
    apply(generation, genome)
    assert torch.equal(genome.read(), two.ask())
    assert generation.record["generation"] == 0 and generation.record["iteration"] == 4
    with pytest.raises(UserError, match="between 1 and the 6 members"):
        CrossEntropy(CemCfg(parents=7), torch.zeros(3), 6)


# --- automatic mutation tuning


def test_the_step_is_equation_6():
    for sigma, best, mean in [(0.01, 0.4, 0.1), (0.5, 30.0, -2.0), (0.1, 1.0, 1.0), (0.02, 1.5, 0.5)]:
        distance = torch.nn.functional.smooth_l1_loss(torch.tensor(best), torch.tensor(mean)).item()
        assert math.isclose(smooth_l1(best, mean), distance, rel_tol=1e-6, abs_tol=1e-9)
        expected = min(max(0.005 / (50 * sigma) * distance, 0.0), 1e-3)
        assert math.isclose(amt_step(sigma, best, mean, 0.005, 50, 1e-3), expected, rel_tol=1e-6, abs_tol=1e-12)


@pytest.mark.parametrize("kind", ["raw", "normalised"])
def test_the_mutation_rate_never_falls_and_steps_at_most_zeta(kind):
    rate = MutationRate(AmtCfg(5e-3, 5e-3, 1e-4, kind), 50)
    generator = torch.Generator().manual_seed(0)
    for number in range(200):
        before = rate.sigma
        rate.tell(10.0 ** (number % 5 - 2) * torch.randn(50, generator=generator, dtype=torch.float64))
        assert 0.0 <= rate.sigma - before <= 1e-4 + 1e-15


def test_with_raw_returns_the_mutation_rate_is_a_schedule():
    raw = MutationRate(AmtCfg(5e-3, 5e-3, 1e-4, "raw"), 50)
    scaled = MutationRate(AmtCfg(5e-3, 5e-3, 1e-4), 50)
    generator = torch.Generator().manual_seed(0)
    for _ in range(100):
        fitness = 3000.0 + 100.0 * torch.randn(50, generator=generator, dtype=torch.float64)
        raw.tell(fitness)
        scaled.tell(fitness)
    assert math.isclose(raw.sigma, 5e-3 + 100 * 1e-4, rel_tol=1e-9), "sigma_0 + zeta t, whatever the population does"
    assert 5e-3 < scaled.sigma < 5e-3 + 50 * 1e-4, "a population that has converged grows slower"


def test_normalised_fitness_makes_tuning_blind_to_its_unit():
    one, other = (MutationRate(AmtCfg(5e-3, 5e-3, 1.0), 50) for _ in range(2))
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        fitness = 5.0 + torch.randn(50, generator=generator, dtype=torch.float64)
        one.tell(fitness)
        other.tell(1000.0 * fitness)
    assert math.isclose(one.sigma, other.sigma, rel_tol=1e-9) and one.sigma > 5e-3
    again = MutationRate(AmtCfg(5e-3, 5e-3, 1.0), 50)
    again.load_state_dict(one.state_dict())
    assert again.tell(fitness) == one.tell(fitness)


# --- winners


def test_winners_are_the_best_share():
    fitness = torch.tensor([1.0, 5.0, 3.0, 5.0, 2.0])
    assert soft_winners(fitness, 0.4).tolist() == [1, 3]
    assert soft_winners(fitness, 0.6).tolist() == [1, 3, 2]
    assert soft_winners(fitness, 0.01).tolist() == [1], "one at least"


def test_crossover_takes_every_element_from_one_parent():
    first, second = torch.randn(40, 100), torch.randn(40, 100)
    child = mix(first, second, torch.Generator().manual_seed(2))
    from_first = child == first
    assert (from_first | (child == second)).all()
    assert abs(float(from_first.float().mean()) - 0.5) < 0.03
    assert from_first.float().mean(dim=1).min() > 0.2, "every child is of both"
