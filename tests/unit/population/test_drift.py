"""Evolution selects, and does not drift: what it does to agents that are all alike, or whose fitness is noise."""

import pytest
import torch

from epo_lab.algorithms.on_policy.genome import GeneTable
from epo_lab.base.clock import Clock
from epo_lab.base.options import build
from epo_lab.configs.presets import agent_preset
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import Fitness, FitnessTracker
from epo_lab.population.genetics import EvolutionOptions, Genetics, gene_spread
from epo_lab.population.trigger import largest_range_of_noise

pytestmark = pytest.mark.unit

DEFAULT = agent_preset("epo")["algorithm"]["evolution"]
OLD = {"crossover": "fitness_weighted", "mutation": "absolute", "mutation_sigma": 0.25, "parents": "fitness"}
"""What version 0.1 recommended."""


class Rows:
    """Genes without networks."""

    def __init__(self, genes):
        self.genes = genes

    def read(self, slots=None):
        return self.genes.clone()

    def write(self, slots, rows):
        self.genes[list(slots)] = rows

    def inherit(self, slot, parents):
        pass

    def swap(self, first, second):
        self.genes[[first, second]] = self.genes[[second, first]]


def at(step):
    clock = Clock()
    clock.steps, clock.iterations = step, step
    return clock


def fitness_of(values, error=0.0):
    number = len(values)
    errors = torch.full((number,), error, dtype=torch.float64)
    return Fitness(values, torch.full((number,), 100.0), errors, torch.ones(number, dtype=torch.bool))


def drift(num_agents, options, seed, events=30):
    """Return the spread before and after events with random fitness, and how far the master is from the followers."""
    generator = torch.Generator().manual_seed(seed)
    genome = Rows(torch.randn(num_agents, 32, generator=generator))
    cfg = build(EvolutionOptions, {**options, "trigger": "interval", "promotion": False, "warmup_steps": 0})
    genetics = Genetics(cfg, num_agents, seed, 100)
    before = gene_spread(genome.genes)
    for event in range(events):
        values = torch.rand(num_agents, generator=generator, dtype=torch.float64)
        generation = genetics.propose(fitness_of(values), genome, at(1000 * event))
        if generation is not None:
            apply(generation, genome)
    followers = genome.genes[1:]
    apart = (genome.genes[0] - followers).norm(dim=1).mean() / torch.pdist(followers).mean()
    return gene_spread(genome.genes) / before, float(apart)


@pytest.mark.parametrize("num_agents", [8, 16, 64])
def test_random_fitness_keeps_the_spread_and_the_master_in_the_middle(num_agents):
    kept, apart = torch.tensor([drift(num_agents, DEFAULT, seed) for seed in range(8)]).mean(dim=0)
    assert 0.8 < kept < 1.2
    assert apart < 1.3
    kept, apart = torch.tensor([drift(num_agents, OLD | {"num_elites": 0.6}, seed) for seed in range(8)]).mean(dim=0)
    assert kept < 0.45 and apart > 2.0, "what it was like before"


@pytest.mark.parametrize("num_agents", [4, 8, 16])
def test_identical_agents_rarely_make_an_event(num_agents):
    generator = torch.Generator().manual_seed(0)
    genetics = Genetics(EvolutionOptions(noise_guard=True, gamma=0.0, warmup_steps=0), num_agents, 0, 1000)
    fired = 0
    for check in range(2000):
        noise = torch.randn(num_agents, generator=generator, dtype=torch.float64)
        genome = Rows(torch.randn(num_agents, 4, generator=generator))
        fired += genetics.propose(fitness_of(10.0 + noise, error=1.0), genome, at(1000 * check)) is not None
    assert fired / 2000 == pytest.approx(0.05, abs=0.02)


def test_range_of_noise_is_the_studentized_ranges_quantile():
    from scipy.stats import studentized_range

    for count in (3, 7, 15, 63):
        assert largest_range_of_noise(count) == pytest.approx(studentized_range.ppf(0.95, count, 10**7), rel=1e-4)


def newborns_among_the_worst(coverage, interval, steps=4000):
    """Return how often agents that were born at the last check are among the worst three of seven that are alike."""
    agents, envs, length = 8, 24, 40
    generator = torch.Generator().manual_seed(1)
    ids = torch.arange(agents).repeat_interleave(envs)
    tracker = FitnessTracker(ids, agents, min_coverage=coverage)
    age = torch.randint(0, length, ids.shape, generator=generator)

    def ends():
        early = torch.rand(ids.shape, generator=generator) < 0.3
        return torch.where(early, torch.randint(1, length, ids.shape, generator=generator), length)

    end, newborn, found, due = ends(), [], [], interval
    for step in range(steps):
        age += 1
        dones = age >= end
        tracker.step(torch.ones(len(ids)), dones, {})
        age, end = torch.where(dones, 0, age), torch.where(dones, ends(), end)
        # the genetic algorithm looks again in every roll-out until all can be judged
        if step >= due and step % 8 == 0:
            fitness = tracker.compute()
            if not bool(fitness.evaluated[1:].all()):
                continue
            due = step + interval
            worst = (torch.sort(fitness.values[1:]).indices[:3] + 1).tolist()
            found += [agent in worst for agent in newborn]
            newborn = (torch.randperm(7, generator=generator)[:3] + 1).tolist()
            tracker.restart(newborn)
    return sum(found) / len(found)


def test_newborns_are_not_judged_by_their_shortest_episodes():
    assert newborns_among_the_worst(0.95, 80) == pytest.approx(3 / 7, abs=0.08)
    assert newborns_among_the_worst(0.5, 50) > 0.6, "what it was like before"


def test_the_master_changes_places_with_a_follower_that_is_better_beyond_doubt():
    torch.manual_seed(0)
    genes, noise = torch.nn.Parameter(torch.randn(5, 3)), torch.nn.Parameter(torch.randn(5, 2))
    optimizer = torch.optim.Adam([genes, noise])
    (genes.sum() + noise.square().sum()).backward()
    optimizer.step()
    table = GeneTable(genes, noise, optimizer)
    genetics = Genetics(EvolutionOptions(trigger="off", promotion=True, warmup_steps=0), 5)
    values = torch.tensor([1.0, 0.0, 2.0, 3.0, 0.5], dtype=torch.float64)
    before = {"genes": genes.detach().clone(), "noise": noise.detach().clone()}
    moments = optimizer.state[noise]["exp_avg"].clone()
    assert genetics.propose(fitness_of(values, error=1.0), table, at(0)) is None, "within two standard errors"
    generation = genetics.propose(fitness_of(values, error=0.5), table, at(1000))
    assert generation.promoted == 3 and generation.children == [] and genetics.promotions == 1
    assert genetics.ids == [3, 1, 2, 0, 4], "lineage follows the gene"
    apply(generation, table)
    order = [3, 1, 2, 0, 4]
    assert torch.equal(genes, before["genes"][order]) and torch.equal(noise, before["noise"][order])
    assert torch.equal(optimizer.state[noise]["exp_avg"], moments[order])
