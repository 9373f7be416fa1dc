"""The genetic algorithm (invariants 21 to 27, 31, 32)."""

import json
import math

import pytest
import torch

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.population.crossover import crossover
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import Fitness
from epo_lab.population.genetics import EvolutionOptions, Genetics, breed, gene_spread
from epo_lab.population.lineage import replay
from epo_lab.population.mutation import mutate, mutation_scale
from epo_lab.population.selection import draw_parents, rank_followers
from epo_lab.population.trigger import eq3_trigger
from epo_lab.runner.records import RecordFiles, read_records

pytestmark = pytest.mark.unit


def fitness_of(values, error=0.0) -> Fitness:
    values = torch.tensor(values, dtype=torch.float64)
    ones = torch.ones_like(values)
    return Fitness(values, 100 * ones, error * ones, ~values.isnan())


class Rows:
    """A genome that is a plain table."""

    def __init__(self, table):
        self.table = table

    def read(self, slots=None):
        return self.table if slots is None else self.table[list(slots)]

    def write(self, slots, rows):
        self.table[list(slots)] = rows

    def inherit(self, slot, parents):
        pass


def at(step, iteration=None):
    return Clock(iterations=step if iteration is None else iteration, steps=step)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- trigger


@pytest.mark.parametrize(
    ("values", "floor", "fires"),
    [
        ([2.0, 2.0, 2.0], 1.0, False),  # all equal, median above zero
        ([0.0, 0.0, 0.0], 1.0, False),  # all equal, median zero
        ([-2.0, -2.0, -2.0], 1.0, False),  # all equal, median below zero: the literal equation would fire
        ([-10.0, -9.0, -8.0], 1.0, False),  # median below zero: compared with its size
        ([-10.0, -9.0, -4.0], 1.0, True),
        ([0.0, 0.0, 0.2], 1.0, False),  # one lucky success
        ([0.0, 0.0, 0.4], 1.0, True),
        ([8.0, 10.0, 11.0], 1.0, False),  # spread equals the threshold
        ([7.9, 10.0, 11.0], 1.0, True),
        ([1.0, math.nan, 9.0], 1.0, False),  # somebody has no fitness
        ([9.0, 11.0, 10.0, 13.2], 1.0, True),  # even count: the median is the mean of the middle two, 10.5
        ([9.0, 11.0, 10.0, 12.1], 1.0, False),
    ],
)
def test_trigger_table(values, floor, fires):
    assert eq3_trigger(torch.tensor(values, dtype=torch.float64), 0.3, floor).fires is fires


def test_noise_alone_does_not_fire():
    values = torch.tensor([9.0, 10.0, 14.0], dtype=torch.float64)
    assert eq3_trigger(values, 0.3, 1.0, error=0.5).fires
    assert not eq3_trigger(values, 0.3, 1.0, error=3.0).fires


# --- selection


def test_followers_are_ranked_and_the_master_is_not():
    assert rank_followers(torch.tensor([99.0, 1.0, 3.0, 3.0, 2.0])).tolist() == [2, 3, 4, 1]


def test_parents_are_distinct_elites():
    elites = torch.tensor([4, 2, 1])
    seen = {draw_parents(elites, "elite", generator(seed)) for seed in range(200)}
    assert seen == {(a, b) for a in (4, 2, 1) for b in (4, 2, 1) if a != b}
    assert draw_parents(elites, "top2", generator()) == (4, 2)
    first = [draw_parents(elites, "fitness", generator(seed))[0] for seed in range(400)]
    assert first.count(4) > first.count(2) > first.count(1)


def test_the_master_is_never_parent_or_child():
    cfg = EvolutionOptions(trigger="interval", warmup_steps=0, interval_steps=1, num_elites=3)
    for event in range(10_000 // 5):
        values = torch.rand(9, generator=generator(event), dtype=torch.float64)
        elites, children = breed(values, torch.zeros(9, 4), cfg, torch.zeros(4), seed=1, check=event)
        assert len(children) == 9 - 1 - 3
        for child in children:
            assert child.slot != 0 and 0 not in child.parents and 0 not in elites
            assert child.slot not in elites and set(child.parents) <= set(elites)


def test_by_default_only_the_worst_follower_is_replaced():
    values = torch.tensor([0.0, 5.0, 1.0, 3.0, 4.0], dtype=torch.float64)
    _, children = breed(values, torch.zeros(5, 2), EvolutionOptions(), torch.zeros(2), seed=0, check=1)
    assert [child.slot for child in children] == [2]


# --- crossover and mutation


def test_crossovers():
    genes, values = torch.randn(5, 1000, generator=generator()), torch.tensor([0.0, 1.0, 1.0, 4.0, 2.0]).double()
    pair = (3, 4)
    average = crossover(genes, values, pair, "average", generator())
    assert torch.equal(average, (genes[3] + genes[4]) / 2)
    uniform = crossover(genes, values, pair, "uniform", generator())
    from_first, from_second = uniform == genes[3], uniform == genes[4]
    assert (from_first | from_second).all() and 400 < from_first.sum() < 600
    weighted = crossover(genes, values, pair, "fitness_weighted", generator())
    torch.testing.assert_close(weighted, 0.75 * genes[3] + 0.25 * genes[4])
    equal = crossover(genes, torch.ones(5).double(), pair, "fitness_weighted", generator())
    torch.testing.assert_close(equal, average)


def test_mutation_noise_has_the_stated_size():
    scale = torch.full((100_000,), 0.1)
    noise = mutate(torch.zeros(100_000), scale, generator())
    assert abs(noise.mean()) < 0.002
    assert noise.std() == pytest.approx(0.1, rel=0.02)


def test_no_mutation_draws_nothing():
    source = generator()
    before = source.get_state()
    gene = torch.randn(4)
    assert mutate(gene, torch.zeros(4), source) is gene
    assert torch.equal(source.get_state(), before)


def test_mutation_scales():
    genes = torch.randn(64, 8, generator=generator())
    spread = genes[1:].std(dim=0)
    torch.testing.assert_close(mutation_scale(genes, "absolute", 0.3), torch.full((8,), 0.3))
    torch.testing.assert_close(mutation_scale(genes, "relative", 0.1), 0.1 * spread)
    torch.testing.assert_close(mutation_scale(genes * 0.0, "relative", 0.1), torch.full((8,), 0.02))
    torch.testing.assert_close(mutation_scale(genes, "variance_preserving", 9.0), spread / math.sqrt(2))
    assert not mutation_scale(genes, "none", 9.0).any()


def neutral_evolution(mutation: str, sigma: float, events: int) -> float:
    genes = torch.randn(64, 32, generator=generator(1))
    cfg = EvolutionOptions(mutation=mutation, mutation_sigma=sigma)
    spreads = []
    for event in range(events):
        values = torch.rand(64, generator=generator(event), dtype=torch.float64)
        _, children = breed(values, genes, cfg, mutation_scale(genes, mutation, sigma), seed=5, check=event)
        for child in children:
            genes[child.slot] = child.gene
        spreads.append(gene_spread(genes))
    return sum(spreads[-events // 4 :]) / (events // 4)


def test_absolute_mutation_keeps_a_spread_and_averaging_alone_loses_it():
    assert neutral_evolution("absolute", 0.3, 2000) == pytest.approx(math.sqrt(2) * 0.3, rel=0.2)
    assert neutral_evolution("none", 0.0, 1000) < 0.05


# --- schedule


def run_checks(genetics: Genetics, values, steps):
    """Return the steps at which an event happened."""
    genes = torch.randn(genetics.num_agents, 4, generator=generator())
    events = []
    for step in steps:
        if genetics.due(at(step)) and genetics.propose(fitness_of(values), Rows(genes), at(step)):
            events.append(step)
    return events


def test_no_event_before_warm_up_or_within_the_cool_down():
    genetics = Genetics(EvolutionOptions(warmup_steps=100, interval_steps=30), 4, envs_per_agent=100)
    assert run_checks(genetics, [0.0, 1.0, 5.0, 9.0], range(0, 200, 10)) == [100, 130, 160, 190]


def test_no_event_while_a_follower_has_no_fitness():
    genetics = Genetics(EvolutionOptions(warmup_steps=0, interval_steps=30), 4, envs_per_agent=100)
    assert run_checks(genetics, [0.0, 1.0, math.nan, 9.0], range(0, 100, 10)) == []
    assert genetics.checks == 0
    assert run_checks(genetics, [math.nan, 1.0, 2.0, 9.0], [100]) == [100], "the master need not have one"


def test_fewer_than_four_agents_do_not_evolve():
    genetics = Genetics(EvolutionOptions(warmup_steps=0), 3)
    assert not genetics.enabled and not genetics.due(at(10**9))


def test_unknown_settings_are_refused():
    with pytest.raises(UserError, match=r"evolution\.crossover must be one of average"):
        Genetics(EvolutionOptions(crossover="mix"), 8)


# --- lineage


def evolve(genetics: Genetics, files: RecordFiles, genes: torch.Tensor, checks: range) -> None:
    for check in checks:
        values = torch.rand(genetics.num_agents, generator=generator(check), dtype=torch.float64).tolist()
        now = at(10 * check, iteration=check)
        if genetics.due(now):
            generation = genetics.propose(fitness_of(values), Rows(genes), now)
            if generation:
                apply(generation, Rows(genes))
                files.append({"lineage": [generation.record]})


@pytest.mark.parametrize("mutation", ["absolute", "variance_preserving", "none"])
def test_every_generation_can_be_replayed_from_the_log(tmp_path, mutation):
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10, num_elites=4, mutation=mutation, crossover="uniform")
    lineage = RecordFiles(tmp_path)
    evolve(Genetics(cfg, 8, seed=3, envs_per_agent=100), lineage, torch.randn(8, 5, generator=generator()), range(20))
    records = read_records(tmp_path / "lineage.jsonl")
    assert len(records) > 10
    for record in records:
        again = replay(record)
        assert [(c["slot"], c["parents"]) for c in again] == [(c["slot"], c["parents"]) for c in record["children"]]
        for new, old in zip(again, record["children"], strict=True):
            assert new["gene"] == old["gene"]


def test_ids_are_unique_and_ages_count_from_birth(tmp_path):
    lineage = RecordFiles(tmp_path)
    genetics = Genetics(EvolutionOptions(warmup_steps=0, interval_steps=10), 6, envs_per_agent=100)
    evolve(genetics, lineage, torch.randn(6, 3), range(30))
    children = [child for record in read_records(tmp_path / "lineage.jsonl") for child in record["children"]]
    ids = [child["id"] for child in children]
    assert ids == list(range(6, 6 + len(ids)))
    born = dict.fromkeys(range(6), 0)
    for record in read_records(tmp_path / "lineage.jsonl"):
        for child in record["children"]:
            assert child["replaced_age"] == record["iteration"] - born[child["replaced_id"]]
            assert all(parent in born for parent in child["parent_ids"])
            born[child["id"]] = record["iteration"]


def test_a_resumed_population_continues_with_the_same_lineage(tmp_path):
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10)
    texts = []
    for resumed in (False, True):
        folder = tmp_path / str(resumed)
        folder.mkdir()
        lineage, genes = RecordFiles(folder), torch.randn(8, 5, generator=generator())
        genetics = Genetics(cfg, 8, seed=4, envs_per_agent=100)
        evolve(genetics, lineage, genes, range(15))
        if resumed:
            # the run went on for a while after its last checkpoint, and was killed
            state = json.loads(json.dumps(genetics.state_dict()))
            evolve(genetics, lineage, genes.clone(), range(15, 18))
            genetics = Genetics(cfg, 8, seed=99, envs_per_agent=100)
            genetics.load_state_dict(state)
            lineage.drop_after(14)
        evolve(genetics, lineage, genes, range(15, 30))
        texts.append((folder / "lineage.jsonl").read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("num_elites", "num_agents", "expected"),
    [(None, 8, 6), (3, 8, 3), (0.6, 8, 4), (0.6, 64, 38), (0.01, 8, 2), (0.99, 8, 6)],
)
def test_elites_are_counted_or_a_share_of_the_followers(num_elites, num_agents, expected):
    cfg = EvolutionOptions(num_elites=num_elites)
    cfg.check(num_agents)
    assert cfg.count_elites(num_agents) == expected


@pytest.mark.parametrize("num_elites", [0, 1, 1.5, 7, -0.5])
def test_an_impossible_number_of_elites_is_refused(num_elites):
    with pytest.raises(UserError, match="num_elites"):
        EvolutionOptions(num_elites=num_elites).check(8)


# --- ESAC's operators


def test_soft_winners_are_mutated_and_the_master_is_not():
    genes = torch.randn(8, 500, generator=generator())
    values = torch.tensor([9.0, 1, 2, 3, 4, 5, 6, 7], dtype=torch.float64)
    hard, soft = (
        breed(values, genes, EvolutionOptions(num_elites=3, selection=selection), torch.full((500,), 0.1), 3, 1)
        for selection in ("elite", "soft")
    )
    assert hard[0] == soft[0] == [7, 6, 5]
    assert [child.slot for child in hard[1]] == [1, 2, 3, 4]
    assert [child.slot for child in soft[1]] == [1, 2, 3, 4, 7, 6, 5], "children first: their parents are still there"
    for one, two in zip(hard[1], soft[1], strict=False):
        assert torch.equal(one.gene, two.gene)
    for mutant in soft[1][4:]:
        assert mutant.parents == (mutant.slot,)
        noise = mutant.gene - genes[mutant.slot]
        assert noise.std() == pytest.approx(0.1, rel=0.1)


def test_hindsight_takes_every_element_from_an_elite_or_from_one_of_the_event_before():
    genes, previous = torch.randn(8, 1000, generator=generator()), torch.randn(3, 1000, generator=generator(1))
    values = torch.tensor([9.0, 1, 2, 3, 4, 5, 6, 7], dtype=torch.float64)
    cfg = EvolutionOptions(num_elites=3, crossover="hindsight", mutation="none")
    elites, children = breed(values, genes, cfg, torch.zeros(1000), 3, 1, previous)
    rows = set()
    for child in children:
        (parent,) = child.parents
        assert parent in elites
        from_parent = child.gene == genes[parent]
        matches = [int(((child.gene == row) | from_parent).all()) for row in previous]
        assert sum(matches) == 1 and 400 < from_parent.sum() < 600
        rows.add(matches.index(1))
    assert len(rows) > 1, "any of the earlier elites"
    _, first = breed(values, genes, cfg, torch.zeros(1000), 3, 1)
    for child in first:
        one, two = child.parents
        assert ((child.gene == genes[one]) | (child.gene == genes[two])).all(), "the first event has no past"


def test_hindsight_remembers_the_elites_as_they_were(tmp_path):
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10, num_elites=3, crossover="hindsight", trigger="interval")
    genetics = Genetics(cfg, 8, seed=3, envs_per_agent=100)
    genes = torch.randn(8, 5, generator=generator())
    before = genes.clone()
    lineage = RecordFiles(tmp_path)
    evolve(genetics, lineage, genes, range(2))
    one, two = read_records(tmp_path / "lineage.jsonl")
    assert "previous_elites" not in one
    torch.testing.assert_close(torch.tensor(two["previous_elites"]), before[one["elites"]])


def test_mutation_is_tuned_by_equation_6_on_fitness_without_a_unit():
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10, mutation="amt", trigger="interval", zeta=0.01, floor=0.5)
    genetics = Genetics(cfg, 8, seed=3, envs_per_agent=100, gene_scale=2.0)
    genes = torch.randn(8, 5, generator=generator())
    sigma = 0.03
    for check in range(6):
        values = 40.0 + 100.0 * torch.rand(8, generator=generator(check), dtype=torch.float64)
        followers = values[1:].sort().values
        relative = followers / max(abs(float(followers[3])), 0.5)
        distance = float(relative.max() - relative.mean())
        loss = 0.5 * distance**2 if distance < 1 else distance - 0.5
        sigma += min(0.01 / (7 * sigma) * loss, 0.01)
        generation = genetics.propose(fitness_of(values.tolist()), Rows(genes), at(10 * check))
        assert generation.record["mutation_scale"] == pytest.approx([2.0 * sigma] * 5, rel=1e-6)
        assert genetics.scalars(at(0))["Population/mutation_rate"] == pytest.approx(2.0 * sigma)
    assert sigma > 0.035
    again = Genetics(cfg, 8, seed=3, envs_per_agent=100, gene_scale=2.0)
    again.load_state_dict(genetics.state_dict())
    assert again.scalars(at(0)) == genetics.scalars(at(0))


def test_tuned_mutation_has_a_limit():
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10, mutation="amt", trigger="interval", zeta=0.1)
    genetics = Genetics(cfg, 8, seed=3, envs_per_agent=100)
    for check in range(12):
        genetics.propose(fitness_of([0.0, 1, 1, 1, 1, 1, 1, 1e4]), Rows(torch.randn(8, 5)), at(10 * check))
    assert genetics.scalars(at(0))["Population/mutation_rate"] == 0.3


@pytest.mark.parametrize(
    "operators",
    [
        {"mutation": "amt"},
        {"selection": "soft"},
        {"crossover": "hindsight"},
        {"immigrants": 0.5},
        {"immigrants": 1.0, "patience": True},
    ],
)
def test_generations_of_these_operators_are_replayed_and_resumed(tmp_path, operators):
    cfg = EvolutionOptions(warmup_steps=0, interval_steps=10, num_elites=4, trigger="interval", **operators)
    whole, parts = RecordFiles(tmp_path / "whole"), RecordFiles(tmp_path / "parts")
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    evolve(Genetics(cfg, 8, seed=3, envs_per_agent=100), whole, torch.randn(8, 5, generator=generator()), range(12))
    genes = torch.randn(8, 5, generator=generator())
    first = Genetics(cfg, 8, seed=3, envs_per_agent=100)
    evolve(first, parts, genes, range(6))
    second = Genetics(cfg, 8, seed=3, envs_per_agent=100)
    second.load_state_dict(first.state_dict())
    evolve(second, parts, genes, range(6, 12))
    records = read_records(tmp_path / "whole/lineage.jsonl")
    # with patience everybody is new at the first check
    assert records == read_records(tmp_path / "parts/lineage.jsonl") and len(records) == 12 - cfg.patience
    for record in records:
        for child, line in zip(replay(record), record["children"], strict=True):
            assert child == {name: line[name] for name in ("slot", "parents", "gene")}


def test_immigrants_are_drawn_anew_and_nobody_else_is_touched():
    genes = torch.randn(9, 2000, generator=generator())
    cfg = EvolutionOptions(num_elites=4, immigrants=0.5, immigrant_std=3.0, mutation="none", crossover="uniform")
    _, children = breed(torch.arange(9.0), genes, cfg, torch.zeros(2000), 0, 1, gene_scale=0.5)
    # followers 5 to 8 are the elites; of the others the worst two give way to immigrants
    assert [(child.slot, bool(child.parents)) for child in children] == [(1, False), (2, False), (3, True), (4, True)]
    for child in children[:2]:
        assert abs(float(child.gene.std()) - 1.5) < 0.1 and abs(float(child.gene.mean())) < 0.15
        # a gene of nobody's: it has nothing in common with those that are there
        assert torch.corrcoef(torch.cat([child.gene[None], genes]))[0, 1:].abs().max() < 0.1


def test_new_followers_and_those_that_improve_are_spared():
    genetics = Genetics(EvolutionOptions(trigger="interval", num_elites=2, patience=True, warmup_steps=0), 5, 0, 100)
    genome = Rows(torch.randn(5, 3, generator=generator()))

    def look(step, values):
        return genetics.propose(fitness_of(values, error=0.1), genome, at(step))

    assert look(0, [0.0, 4.0, 3.0, 2.0, 1.0]) is None, "everybody is new"
    # follower 4 has risen by more than two standard errors of the difference (0.28), follower 3 by less
    generation = look(1000, [0.0, 4.0, 3.0, 2.2, 1.5])
    assert generation.slots == [3] and generation.record["spared"] == [4]
    apply(generation, genome)
    # the child in slot 3 is new, follower 4 has come to rest
    generation = look(2000, [0.0, 4.0, 3.0, 0.0, 1.5])
    assert generation.slots == [4] and generation.record["spared"] == [3]
