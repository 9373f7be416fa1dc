"""Five sentences about a run: who won, when, through which generations, with whose data, and what to try next."""

from __future__ import annotations

import numpy as np

from .record import STEPS, RunRecord, lives

JUDGED_BY = {
    "Master/fitness": "the master's fitness",
    "Population/fitness_max": "the best member's fitness",
    "Train/mean_reward": "the mean reward",
}
REACHED = 0.9
"""Share of the way from the first to the last fitness at which a run counts as arrived."""
STILL_RISING = 0.1
"""Share of the whole rise that the last quarter must bring for a run to count as unfinished."""
FAR = 1.0
"""KL to the master beyond which it learns little from another agent's data."""
FEW = 0.3
"""Effective share of samples below which the others' data hardly count."""
ALIKE = 0.01
"""KL between two agents below which they are the same policy in other words."""


def story(run: RunRecord) -> list[str]:
    """Return the sentences; those that nothing is known about say so."""
    return [_who(run), _when(run), _generations(run), _sharing(run), "Try next: " + _next(run)]


def score_curve(run: RunRecord) -> tuple[np.ndarray, np.ndarray, str]:
    """Return steps, values and name of what a run is judged by: the first of the table that was logged."""
    for tag, name in JUDGED_BY.items():
        steps, values = run.curve(tag)
        if len(values):
            return steps, values, name
    return np.array([]), np.array([]), "nothing"


def last_tenth(values: np.ndarray) -> float:
    """Return the mean of the last tenth, at least of the last value."""
    return float(values[-max(1, len(values) // 10) :].mean())


def best_follower(run: RunRecord) -> tuple[int, int, float] | None:
    """Return agent, gene and fitness of the best follower at the last census."""
    if not run.census:
        return None
    known = [(value, slot) for slot, value in enumerate(run.census[-1]["fitness"]) if slot and value is not None]
    if not known:
        return None
    value, slot = max(known)
    return slot, run.census[-1].get("gene_id", range(run.num_agents))[slot], value


def ancestors(run: RunRecord, gene: int) -> set[int]:
    """Return a gene and all it descends from."""
    parents = {life["id"]: life["parents"] for life in lives(run)}
    found: set[int] = set()
    waiting = [gene]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += parents.get(one, [])
    return found


def _who(run: RunRecord) -> str:
    _, values, name = score_curve(run)
    if not len(values):
        return "No episode has ended yet, so nobody has won."
    own, best = f"{name} ended at {last_tenth(values):.4g} (mean of the last tenth)", best_follower(run)
    master = run.census[-1]["fitness"][0] if run.census else None
    if best is None or master is None:
        return f"{own[0].upper()}{own[1:]}."
    slot, gene, value = best
    winner = "The master won" if master >= value else f"Follower {slot} (gene {gene}) won"
    fitness = f"{max(master, value):.4g}, that of {_other(master, value)}"
    return f"{winner}: at the last census its fitness was {fitness}; {own}."


def _other(master: float, value: float) -> str:
    return f"the best follower {value:.4g}" if master >= value else f"the master {master:.4g}"


def _when(run: RunRecord) -> str:
    steps, values, _ = score_curve(run)
    if len(values) < 10:
        return "It is too early to say when."
    width = max(1, len(values) // 20)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    rise = smooth[-1] - smooth[0]
    if rise <= 0:
        return "It never rose: the last values are not above the first."
    place = int(np.argmax(smooth >= smooth[0] + REACHED * rise)) + width - 1
    hours = run.hours()
    time = f" ({duration(float(np.interp(steps[place], run.curves[STEPS], hours)))})" if STEPS in run.curves else ""
    return f"It had made {REACHED:.0%} of its way after {_count(steps[place])} of {_count(steps[-1])} steps{time}."


def _generations(run: RunRecord) -> str:
    if run.population < 2:
        return "There was no population, and so there were no generations."
    if not run.generations:
        return "No generation took place: the agents are those that it began with."
    total = f"{run.generations} generation{'s' if run.generations > 1 else ''} took place"
    if not run.lineage:
        return f"{total}; this method keeps no family tree that would tell which mattered."
    best = best_follower(run)
    alive = [life for life in lives(run) if life["death"] is None and life["fitness"] is not None]
    if best:
        line = ancestors(run, best[1])
    else:
        line = ancestors(run, max(alive, key=lambda life: life["fitness"])["id"]) if alive else set()
    who = "policy" if run.policies else "follower"
    mattered = [
        number
        for number, event in enumerate(run.lineage, start=1)
        if any(child["id"] in line for child in event["children"])
    ]
    if not mattered:
        return f"{total}; none of them bore the best {who} of the end or an ancestor of it."
    shown = ", ".join(map(str, mattered[-8:]))
    return f"{total}; the best {who} of the end descends from {len(mattered)} of them (number {shown})."


def _sharing(run: RunRecord) -> str:
    _, shares = run.curve("Population/effective_sample_size")
    _, distances = run.curve("Population/kl_to_master")
    if not len(shares) or run.population < 2:
        return "The master had no data of others to use."
    share = last_tenth(shares)
    usable = "could use" if share >= FEW else "could hardly use"
    far = f", at a divergence of {last_tenth(distances):.2g} from it" if len(distances) else ""
    return f"The master {usable} the others' data: {share:.0%} of its samples counted in the last tenth{far}."


def _next(run: RunRecord) -> str:
    """Return one suggestion: the first whose sign is seen."""
    _, values, _ = score_curve(run)
    if len(values) >= 20:
        quarter = len(values) // 4
        rise = last_tenth(values) - float(values[:quarter].mean())
        late = last_tenth(values) - float(values[-quarter - max(1, quarter // 2) : -quarter].mean())
        if rise > 0 and late > STILL_RISING * rise:
            return "more iterations (--resume --max_iterations N), because it was still rising."
    if run.population < 2:
        return "a population (--agent epo), and several seeds of both with scripts/compare.py."
    _, distances = run.curve("Population/kl_to_master")
    _, shares = run.curve("Population/effective_sample_size")
    if last_tenth(shares) < FEW if len(shares) else len(distances) and last_tenth(distances) > FAR:
        return (
            "followers nearer to the master (a smaller agent.algorithm.genes.init_std), because it can use little of"
            " their data."
        )
    _, pairs = run.curve("Population/kl_pairwise")
    if len(pairs) and last_tenth(pairs) < ALIKE:
        return "more variety (a larger agent.algorithm.genes.init_std), because the agents act alike."
    if not run.generations:
        return "an earlier generation (a smaller agent.algorithm.evolution.gamma), because none took place."
    return "the same with several seeds (scripts/compare.py --seeds 5), because one run proves little."


def _count(number: float) -> str:
    for size, letter in ((1e9, " billion"), (1e6, " million"), (1e3, ",000")):
        if number >= size:
            return f"{number / size:.3g}{letter}" if letter != ",000" else f"{number:,.0f}"
    return f"{number:.0f}"


def duration(hours: float) -> str:
    """Return a time in words."""
    minutes = hours * 60
    return f"{hours:.1f} h" if hours >= 2 else f"{minutes:.0f} min" if minutes >= 2 else f"{minutes * 60:.0f} s"
