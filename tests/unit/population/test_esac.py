"""ESAC's evolution: who is in a generation, what moves theta, and where children come from."""

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from epo_lab.base.clock import Clock
from epo_lab.population.esac import EsacCfg, EsacEsCfg, EsacEvolution
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import Fitness

pytestmark = pytest.mark.unit

SHAPES = [torch.Size([40, 5]), torch.Size([40])]
SIZE, MEMBERS = 240, 11


def evolution(members: int = MEMBERS, es: dict | None = None, **esac) -> EsacEvolution:
    theta = torch.linspace(-1.0, 1.0, SIZE, dtype=torch.float64)
    cfg = EsacEsCfg(**{"sigma": 0.05, "learning_rate": 0.2, "zeta": 1e-3, **(es or {})})
    return EsacEvolution(cfg, EsacCfg(**esac), theta, SHAPES, members, seed=4)


def random_fitness(seed: int, members: int = MEMBERS) -> torch.Tensor:
    return torch.randn(members, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def known(values: torch.Tensor) -> Fitness:
    return Fitness(values, torch.ones_like(values), torch.zeros_like(values), torch.ones(len(values), dtype=torch.bool))


class Rows:
    def __init__(self, rows):
        self.rows = rows.clone()

    def read(self, slots=None):
        return self.rows

    def write(self, slots, rows):
        self.rows[list(slots)] = rows

    def inherit(self, slot, parents):
        pass


def test_the_sac_actor_plays_as_it_is_and_the_others_have_noise():
    esac = evolution()
    esac.actor = torch.full((SIZE,), 7.0, dtype=torch.float64)
    rows, noise = esac.ask(), esac.noise()
    assert rows.shape == (MEMBERS, SIZE) and noise.shape == (MEMBERS - 1, SIZE)
    assert torch.equal(rows[0], esac.actor)
    assert torch.allclose(rows[1:], esac.theta + 0.05 * noise, atol=1e-15)


def test_the_return_of_the_sac_actor_never_moves_theta():
    """It has no noise: theta moves by the ranks of the others alone."""
    one, two = evolution(), evolution()
    fitness = random_fitness(0)
    other = fitness.clone()
    other[0] = 100.0
    noise, before, sigma = one.noise().numpy(), one.theta.numpy().copy(), one.sigma
    one.breed(one.ask(), fitness)
    two.breed(two.ask(), other)
    assert torch.equal(one.theta, two.theta)
    ranks = (rankdata(fitness[1:].numpy()) - 1) / (MEMBERS - 2) - 0.5
    step = 0.2 / ((MEMBERS - 1) * sigma) * (ranks @ noise)
    assert np.abs(one.theta.numpy() - (before + step)).max() < 1e-12


def test_winners_are_the_best_share_and_the_sac_actor_may_be_one():
    esac = evolution(winners=0.4)
    fitness = torch.arange(MEMBERS, dtype=torch.float64)
    fitness[0] = 50.0
    rows = esac.ask()
    slots = esac.breed(rows, fitness)
    assert slots == [0, 10, 9, 8]
    assert torch.equal(esac.winners, rows[slots])


def test_children_have_every_element_from_a_winner_or_theta():
    esac = evolution(hindsight=False)
    for seed in range(3):
        rows = esac.ask()
        slots = esac.breed(rows, random_fitness(seed))
        from_winner, from_theta = esac.children == rows[slots], esac.children == esac.theta
        assert (from_winner | from_theta).all()
        assert 0.4 < from_winner.double().mean() < 0.6


def test_hindsight_crosses_with_the_winners_of_the_generation_before():
    esac = evolution(hindsight=True)
    first = esac.ask()
    before = first[esac.breed(first, random_fitness(0))]
    assert not any((esac.children == row).all() for row in before)
    esac.actor = torch.full((SIZE,), 7.0, dtype=torch.float64)  # it has learned, and is another one now
    rows = esac.ask()
    slots = esac.breed(rows, random_fitness(1))
    now, earlier, mean = (esac.children == other for other in (rows[slots], before, esac.theta))
    assert (now | earlier | mean).all(), "nothing comes from anywhere else"
    # a winner, its predecessor and theta: 1/4, 1/4, 1/2
    assert now.double().mean() == pytest.approx(0.25, abs=0.06)
    assert earlier.double().mean() == pytest.approx(0.25, abs=0.06)
    esac.breed(esac.ask(), random_fitness(2))
    assert not (esac.children == before).double().mean() > 0.01, "only the last generation"


def test_children_are_mutated_too():
    """Soft: nothing shields a winner."""
    esac = evolution()
    esac.breed(esac.ask(), random_fitness(0))
    rows, noise = esac.ask(), esac.noise()
    number = len(esac.children)
    assert torch.allclose(rows[1 : number + 1], esac.children + esac.sigma * noise[:number], atol=1e-15)
    assert torch.allclose(rows[number + 1 :], esac.theta + esac.sigma * noise[number:], atol=1e-15)


def test_the_mutation_rate_follows_the_whole_population():
    raw = evolution(es={"amt_fitness": "raw", "zeta": 1e-3})
    for seed in range(20):
        raw.breed(raw.ask(), 1000.0 * random_fitness(seed))
    assert raw.sigma == pytest.approx(0.05 + 20 * 1e-3), "with raw returns it is the schedule sigma_0 + zeta t"
    still = evolution(es={"zeta": 0.0})
    still.breed(still.ask(), random_fitness(0))
    assert still.sigma == 0.05


def test_the_chance_of_sac_falls_with_the_steps():
    cfg = EsacCfg()
    assert cfg.probability_at(0) == 1.0
    assert cfg.probability_at(1_200_000) == pytest.approx(0.1 + 0.9 * np.exp(-1.0))
    assert cfg.probability_at(10**9) == pytest.approx(0.1)


@pytest.mark.parametrize(("paper_gate", "expected"), [(False, (1.0, 0.1)), (True, (0.841, 0.540))])
def test_the_gate_opens_every_g_generations_with_its_probability(paper_gate, expected):
    esac = evolution(gradient_interval=5, paper_gate=paper_gate)
    for steps, chance in zip((0, 10**9), expected, strict=True):
        opened = []
        for number in range(1, 10_001):
            esac.number = number
            opened.append(esac.learns(steps))
        assert not any(open_ for number, open_ in enumerate(opened, 1) if number % 5)
        assert sum(opened) / 2000 == pytest.approx(chance, abs=0.03)


def test_it_goes_on_from_its_state():
    one, two = evolution(), evolution()
    for seed in range(3):
        one.breed(one.ask(), random_fitness(seed))
    two.load_state_dict(one.state_dict())
    for esac in (one, two):
        genome = Rows(esac.ask())
        generation = esac.propose(known(random_fitness(9)), genome, Clock(3, 30))
        apply(generation, genome)
        assert torch.equal(genome.rows, esac.ask())
        assert generation.record["generation"] == 3 and len(generation.record["winners"]) == 4
    assert torch.equal(one.ask(), two.ask()) and one.sigma == two.sigma
