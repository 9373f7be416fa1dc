"""The genetic algorithm on the followers' genes: when to look, whom to replace, and by whose child."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import torch

from epo_lab.base.clock import Clock
from epo_lab.base.errors import UserError
from epo_lab.base.options import ROOT, Count, Positive, Weight, Whole, between, one_of

from .amt import AmtCfg, MutationRate
from .crossover import CROSSOVERS, HINDSIGHT, crossover, own_crossover
from .evolution import Child, Evolution, Generation, Genome
from .fitness import Fitness
from .mutation import AMT, MUTATIONS, mutate, mutation_scale
from .selection import PARENT_MODES, SELECTIONS, draw_parents, rank_followers
from .trigger import Trigger, eq3_trigger

TRIGGERS = ("eq3", "interval", "off")
MIN_AGENTS = 4
"""A master, two parents, and one to replace."""
AMT_SIGMA, AMT_RATE, AMT_MOST = 0.03, 0.01, 0.3
"""Automatic mutation tuning of genes: first size, step size and largest size, in ``genes.init_std``."""
MIN_EPISODES = 2
"""Full episodes that an interval between two checks lasts at least: one ends under the old gene, one under the new."""
CERTAIN_ERRORS = 2.0
"""Standard errors by which a follower must be better than the master to take its place, or than it was before to be
still improving."""


@dataclass
class EvolutionOptions:
    """The genetic algorithm on the followers' genes."""

    trigger: Annotated[str, one_of(TRIGGERS)] = "eq3"
    """``eq3`` (default, the population has spread), ``interval`` (at every check) or ``off``."""
    gamma: Weight = 0.3
    """Relative spread of eq. 3 that fires: 0.3 (default) for manipulation, 0.5 for locomotion."""
    floor: Weight | None = None
    """Least scale of eq. 3. Default None: 5 % of the largest fitness among the followers."""
    warmup_steps: Count = 8138
    """Control steps per environment before the first check. Default 8,138."""
    interval_steps: Whole = 814
    """Control steps per environment between checks, at least two full episodes. Default 814."""
    noise_guard: bool | None = None
    """Whether the spread must also exceed what noise gives. Default None: if an agent has under 64 environments."""
    num_elites: float | None = None
    """Followers that survive an event; below 1, their share. Default None: all but one (K - 2)."""
    parents: Annotated[str, one_of(PARENT_MODES)] = "elite"
    """``elite`` (default, two random elites), ``top2`` or ``fitness``."""
    selection: Annotated[str, one_of(SELECTIONS)] = "elite"
    """``elite`` (default): those that survive an event stay as they are; ``soft``: they are mutated too (ESAC)."""
    crossover: str = "average"
    """``average`` (default), ``uniform``, ``fitness_weighted``, ``hindsight`` (ESAC: each element from an elite or from
    one of the event before), or a function of one's own as ``module:function``."""
    mutation: Annotated[str, one_of(MUTATIONS)] = "absolute"
    """``absolute`` (default), ``relative``, ``variance_preserving``, ``keep_spread``, ``amt`` (ESAC: grows from 0.03 to
    at most 0.3 as long as the best follower is ahead) or ``none``."""
    mutation_sigma: Weight = 0.1
    """Size of the mutation, in ``genes.init_std`` (``absolute``; the least of ``keep_spread``) or in spreads
    (``relative``). Default 0.1."""
    zeta: Weight = 1e-3
    """Largest step of ``amt`` at an event, in ``genes.init_std``. Default 0.001."""
    immigrants: Annotated[float, between(0, 1)] = 0.0
    """Share of the children that nobody bred: genes drawn anew, with the first action noise. Default 0. Children of two
    agents do what one of these does, or something between; immigrants try what nobody does."""
    immigrant_std: Positive = 1.0
    """Standard deviation of immigrants, in ``genes.init_std``. Default 1."""
    candidates: Annotated[int, between(1, 1024)] = 1
    """Genes that are drawn for an immigrant; the one comes whose policy differs most from all agents' in the states of
    the roll-out. Default 1: the first."""
    patience: bool = False
    """Whether followers are spared that are new at a check, or improved by two standard errors since the last one.
    Default False."""
    inherit_noise: bool = True
    """Whether a child takes the mean action noise of its parents. Default True."""
    promotion: bool = False
    """Whether the master and the best follower change places, noise included, when the follower is better by two
    standard errors. Default False."""

    def check(self, num_agents: int) -> None:
        """Raise a :class:`UserError` if a value does not fit the population."""
        path = f"{ROOT}.evolution"
        if ":" in self.crossover:
            own_crossover(self.crossover)
        elif self.crossover not in CROSSOVERS:
            known = ", ".join(CROSSOVERS)
            raise UserError(f"{path}.crossover must be one of {known} or module:function, not {self.crossover}")
        number = self.num_elites
        if number is not None and not (0 < number < 1 or (2 <= number <= max(num_agents - 2, 2) and number % 1 == 0)):
            raise UserError(
                f"{path}.num_elites {number} is neither a share below 1 nor a whole number between 2 and"
                f" {num_agents - 2} for {num_agents} agents"
            )

    def count_elites(self, num_agents: int) -> int:
        """Return how many of the followers survive an event."""
        if self.num_elites is None:
            return num_agents - 2
        if self.num_elites >= 1:
            return int(self.num_elites)
        return min(max(round(self.num_elites * (num_agents - 1)), 2), num_agents - 2)


Choice = Callable[[torch.Tensor, int], Sequence[int]]
"""Chooses so many of some genes, and returns their places among them."""


class _Noted:
    """A choice that is remembered, so that the event can be replayed from its record."""

    def __init__(self, choose: Choice | None) -> None:
        self._choose = choose
        self.picks: list[int] = []

    def __call__(self, genes: torch.Tensor, count: int) -> list[int]:
        chosen = range(count) if self._choose is None or len(genes) == count else self._choose(genes, count)
        self.picks = list(chosen)
        return self.picks


class Genetics(Evolution):
    """Replaces the worst followers' genes. All draws come from a generator seeded by (seed, number of the check)."""

    def __init__(
        self,
        cfg: EvolutionOptions,
        num_agents: int,
        seed: int = 0,
        envs_per_agent: int = 1,
        *,
        episode_length: int = 1,
        gene_scale: float = 1.0,
    ) -> None:
        """Create the genetic algorithm; with fewer than four agents it is off.

        Args:
            cfg: Settings.
            num_agents: Number of agents, the master included.
            seed: Seed of everything that is drawn.
            envs_per_agent: Environments of a follower, over all processes. Defaults to 1.
            episode_length: Control steps of a full episode; an interval is never shorter than what it judges.
            gene_scale: Unit of an ``absolute`` mutation: the standard deviation of the first genes.
        """
        cfg.check(num_agents)
        self.cfg, self.num_agents, self.seed = cfg, num_agents, seed
        self._interval = max(cfg.interval_steps, math.ceil(MIN_EPISODES * episode_length))
        self._sigma = cfg.mutation_sigma * (1.0 if cfg.mutation == "relative" else gene_scale)
        self._gene_scale = gene_scale
        amt = AmtCfg(AMT_SIGMA, AMT_RATE, cfg.zeta, "raw", most=AMT_MOST)
        self._rate = MutationRate(amt, max(num_agents - 1, 1)) if cfg.mutation == AMT else None
        self._previous: torch.Tensor | None = None
        """Genes of the elites of the last event, for ``hindsight``. Shape is (x, L)."""
        self.envs_per_agent = envs_per_agent
        self.breeds = cfg.trigger != "off" and num_agents >= MIN_AGENTS
        self.enabled = self.breeds or (cfg.promotion and num_agents > 1)
        self.promotions = 0
        self.checks = 0
        self.events = 0
        self.last_trigger: Trigger | None = None
        self.ids = list(range(num_agents))
        """Unique id of the gene in each slot."""
        self.births = [0] * num_agents
        """Iteration in which the gene in each slot was born."""
        self._next_check = cfg.warmup_steps
        self._before: list[tuple[int, float, float]] = []
        """Gene, fitness and its error in every slot at the last check."""

    def due(self, clock: Clock) -> bool:
        """Return whether a check is due."""
        return self.enabled and clock.steps >= self._next_check

    def propose(
        self, fitness: Fitness, genome: Genome, clock: Clock, choose: Choice | None = None
    ) -> Generation | None:
        """Look at the population and return the generation that follows, if one does.

        A check that finds followers without a fitness is repeated at the next opportunity.

        Args:
            fitness: Fitness of all agents.
            genome: Genes of all agents.
            clock: Where the run is.
            choose: Chooses among candidates for immigrants. Defaults to None: the first ones come.
        """
        if not bool(fitness.evaluated[1:].all()):
            return None
        self.checks += 1
        self._next_check = clock.steps + self._interval
        trigger = self.last_trigger = self._trigger(fitness)
        fires = self.breeds and (trigger.fires or self.cfg.trigger == "interval")
        promoted = self._promoted(fitness)
        improving = self._improving(fitness)
        if not fires and promoted is None:
            return None

        # Promotion: master and follower change places before anything else is decided
        genes = genome.read()
        if promoted is not None:
            order = list(range(self.num_agents))
            order[0], order[promoted] = promoted, 0
            genes = genes[order]
            fitness = replace(fitness, values=fitness.values[order], errors=fitness.errors[order])
            self.ids[0], self.ids[promoted] = self.ids[promoted], self.ids[0]
            self.births[0], self.births[promoted] = self.births[promoted], self.births[0]
            self.promotions += 1

        # Immigrants and children of the elites take the places of the worst
        spared = [slot for slot in range(1, self.num_agents) if self.cfg.patience and self.ids[slot] in improving]
        previous, chosen = self._previous, _Noted(choose)
        elites, children, scale = [], [], torch.zeros(genes.shape[1])
        if fires:
            elites, children, scale = self._breed(fitness, genes, trigger, spared, chosen)
            if not children and promoted is None:
                return None

        # The event's line in the lineage
        self.events += 1
        record = {
            "event": self.events,
            "check": self.checks,
            "iteration": clock.iterations,
            "steps": clock.steps,
            "seed": self.seed,
            "cfg": asdict(self.cfg),
            "fitness": [_number(value) for value in fitness.values.tolist()],
            "counts": fitness.counts.long().tolist(),
            "spread": trigger.spread,
            "median": trigger.median,
            "threshold": trigger.threshold,
            "fired": trigger.fires,
            "why": "interval" if self.cfg.trigger == "interval" else "eq3" if fires else "promotion",
            "promoted": promoted,
            "elites": elites,
            "spared": spared,
            "gene_scale": self._gene_scale,
            "chosen": chosen.picks,
            "mutation_scale": scale.tolist(),
            "gene_spread_before": gene_spread(genes),
            "gene_spread_after": gene_spread(_with(genes, children)),
            "children": self._born(children, genes, clock.iterations),
        }
        if previous is not None:
            record["previous_elites"] = previous.tolist()
        return Generation(children, record, promoted)

    def rescale(self, factor: float) -> None:
        """Measure genes in another unit from now on: distances between them were multiplied by a factor."""
        self._gene_scale *= factor
        if self.cfg.mutation != "relative":
            self._sigma *= factor

    def scalars(self, clock: Clock) -> dict[str, float]:
        """Return what is logged of the generations so far, and of the last check."""
        ages = [clock.iterations - birth for birth in self.births[1:]]
        values = {
            "Generation/events": float(self.events),
            "Generation/checks": float(self.checks),
            "Generation/promotions": float(self.promotions),
            "Generation/mean_age": sum(ages) / max(len(ages), 1),
        }
        trigger = self.last_trigger
        if trigger is not None and not math.isnan(trigger.spread):
            values["Generation/fitness_spread"] = trigger.spread
            values["Generation/fitness_median"] = trigger.median
            values["Generation/threshold"] = trigger.threshold
        if self._rate is not None:
            values["Population/mutation_rate"] = self._gene_scale * self._rate.sigma
        return values

    def state_dict(self) -> dict[str, Any]:
        """Return everything a resumed run needs."""
        trigger = None if self.last_trigger is None else asdict(self.last_trigger)
        own = {name: getattr(self, name) for name in _STATE} | {"last_trigger": trigger, "previous": self._previous}
        return own if self._rate is None else own | {"rate": self._rate.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for name in _STATE:
            if name in state:
                setattr(self, name, state[name])
        self.last_trigger = None if state["last_trigger"] is None else Trigger(**state["last_trigger"])
        previous = state.get("previous")
        self._previous = None if previous is None else previous.cpu()
        if self._rate is not None and "rate" in state:
            self._rate.load_state_dict(state["rate"])

    def _trigger(self, fitness: Fitness) -> Trigger:
        followers = fitness.values[1:]
        guarded = self.envs_per_agent < 64 if self.cfg.noise_guard is None else self.cfg.noise_guard
        error = float(fitness.errors[1:].mean()) if guarded else None
        return eq3_trigger(followers, self.cfg.gamma, self._floor(followers), error=error)

    def _floor(self, followers: torch.Tensor) -> float:
        """Return the least scale of the fitness."""
        return 0.05 * float(followers.abs().max()) if self.cfg.floor is None else self.cfg.floor

    def _mutation_sigma(self, fitness: torch.Tensor, median: float) -> float:
        """Return the size of this event's mutation; one that is tuned is tuned first."""
        if self._rate is None:
            return self._sigma
        # Automatic mutation tuning (ESAC eq. 6) on fitness without a unit
        scale = max(abs(median), self._floor(fitness))
        return self._gene_scale * self._rate.tell(fitness / scale if scale > 0.0 else fitness)

    def _promoted(self, fitness: Fitness) -> int | None:
        """Return the best follower if it is better than the master beyond doubt."""
        if not self.cfg.promotion or not bool(fitness.evaluated[0]):
            return None
        best = int(rank_followers(fitness.values)[0])
        # the difference of two means, in units of its own standard error
        error = math.hypot(float(fitness.errors[0]), float(fitness.errors[best]))
        ahead = float(fitness.values[best] - fitness.values[0])
        return best if ahead > CERTAIN_ERRORS * error and ahead > 0 else None

    def _improving(self, fitness: Fitness) -> set[int]:
        """Return the genes that are new at this check, or fitter than at the last one beyond doubt."""
        before = {gene: (value, error) for gene, value, error in self._before}
        self._before = list(zip(self.ids, fitness.values.tolist(), fitness.errors.tolist(), strict=True))
        found = set()
        for gene, value, error in self._before:
            first, first_error = before.get(gene, (-math.inf, 0.0))
            if value - first > CERTAIN_ERRORS * math.hypot(error, first_error):
                found.add(gene)
        return found

    def _breed(
        self, fitness: Fitness, genes: torch.Tensor, trigger: Trigger, spared: list[int], choose: Choice
    ) -> tuple[list[int], list[Child], torch.Tensor]:
        """Return elites, children and the standard deviation of their mutation."""
        previous, number = self._previous, self.num_agents - 1 - self.cfg.count_elites(self.num_agents)
        sigma = self._mutation_sigma(fitness.values[1:], trigger.median)
        scale = mutation_scale(genes, self.cfg.mutation, sigma, target=self._gene_scale, num_children=number)
        elites, children = breed(
            fitness.values,
            genes,
            self.cfg,
            scale,
            self.seed,
            self.checks,
            previous,
            gene_scale=self._gene_scale,
            spared=spared,
            choose=choose,
        )
        if self.cfg.crossover == HINDSIGHT:
            self._previous = genes[elites].clone()
        return elites, children, scale

    def _born(self, children: list[Child], genes: torch.Tensor, iteration: int) -> list[dict[str, Any]]:
        """Give the children ids and return their records; an id is never given twice."""
        first = max(self.ids) + 1
        lines = [self._child_record(child, first + number, genes, iteration) for number, child in enumerate(children)]
        for child, line in zip(children, lines, strict=True):
            self.ids[child.slot], self.births[child.slot] = line["id"], iteration
        return lines

    def _child_record(self, child: Child, new_id: int, genes: torch.Tensor, iteration: int) -> dict[str, Any]:
        def distance(slot: int) -> float:
            return float((child.gene - genes[slot]).norm())

        return {
            "slot": child.slot,
            "id": new_id,
            "replaced_id": self.ids[child.slot],
            "replaced_age": iteration - self.births[child.slot],
            "parents": list(child.parents),
            "parent_ids": [self.ids[slot] for slot in child.parents],
            "distance_to_parents": [distance(slot) for slot in child.parents],
            "distance_to_master": distance(0),
            "parent_genes": [genes[slot].tolist() for slot in child.parents],
            "gene": child.gene.tolist(),
        }


def breed(
    fitness: torch.Tensor,
    genes: torch.Tensor,
    cfg: EvolutionOptions,
    scale: torch.Tensor,
    seed: int,
    check: int,
    previous: torch.Tensor | None = None,
    *,
    gene_scale: float = 1.0,
    spared: Sequence[int] = (),
    choose: Choice | None = None,
) -> tuple[list[int], list[Child]]:
    """Return the elites, and a child for every other follower, worst first; soft elites come after, as mutants.

    Args:
        fitness: Fitness of all agents. Shape is (K,).
        genes: Genes of all agents before the event. Shape is (K, L).
        cfg: Settings.
        scale: Standard deviation of the mutation, by dimension.
        seed: Seed of the population.
        check: Number of the check.
        previous: Genes of the elites of the event before, for ``hindsight``. Defaults to None: there was none, and
            two elites of this event are crossed.
        gene_scale: Unit of an immigrant's gene. Defaults to 1.
        spared: Followers that stay whatever their rank. Defaults to nobody.
        choose: Chooses among candidates for immigrants. Defaults to None: the first ones come.
    """
    generator = torch.Generator().manual_seed(_mix(seed, check))
    ranked = rank_followers(fitness)
    num_elites = cfg.count_elites(len(fitness))
    elites = ranked[:num_elites]
    replaced = [slot for slot in ranked[num_elites:].flip(0).tolist() if slot not in spared]
    # Immigrants: genes of nobody's, in the places of the worst
    number = round(cfg.immigrants * len(replaced))
    drawn = torch.randn(number * cfg.candidates, genes.shape[1], generator=generator)
    drawn *= cfg.immigrant_std * gene_scale
    picks = range(number) if choose is None or not number else choose(drawn, number)
    # Each takes the place of one of the worst
    children = [Child(slot, (), drawn[pick]) for slot, pick in zip(replaced, picks, strict=False)]
    # Children of two elites: crossover, then mutation
    for slot in replaced[number:]:
        parents: tuple[int, ...] = draw_parents(elites, cfg.parents, generator)
        table, pair = genes, parents
        if cfg.crossover == HINDSIGHT and previous is not None:
            # Hindsight crossover: the second parent is an elite of the event before, which is in no slot any more
            table = torch.cat([genes, previous])
            parents = parents[:1]
            pair = (*parents, len(genes) + int(torch.randint(len(previous), (), generator=generator)))
        gene = crossover(table, fitness, pair, cfg.crossover, generator)
        children.append(Child(slot, parents, mutate(gene, scale, generator)))
    if cfg.selection == "soft":
        # Soft winners: nothing shields them from mutation
        children += [Child(slot, (slot,), mutate(genes[slot], scale, generator)) for slot in elites.tolist()]
    return elites.tolist(), children


def _with(genes: torch.Tensor, children: list[Child]) -> torch.Tensor:
    """Return the genes after an event."""
    after = genes.clone()
    for child in children:
        after[child.slot] = child.gene
    return after


def gene_spread(genes: torch.Tensor) -> float:
    """Return the followers' standard deviation, mean over the dimensions of the gene."""
    return float(genes[1:].std(dim=0).mean()) if len(genes) > 2 else 0.0


def pairwise_distance(genes: torch.Tensor) -> float:
    """Return the mean distance between two followers' genes."""
    return float(torch.pdist(genes[1:]).mean()) if len(genes) > 2 else 0.0


def _mix(seed: int, number: int) -> int:
    """Return a seed for the ``number``-th check; neighbouring numbers give unrelated seeds (splitmix64)."""
    z = (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (z ^ (z >> 31)) & (2**63 - 1)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


_STATE = ("seed", "checks", "events", "ids", "births", "_next_check", "promotions", "_gene_scale", "_sigma", "_before")
