"""Say whether an agent is ahead of others in a comparison, for example:

./isaaclab.sh -p tools/significance.py docs/results/diagnostics/v2/scores.csv --agent epo --against sapg,ppo
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scipy.stats import fisher_exact, mannwhitneyu

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.report.comparison import Score, read_scores


def holm(values: list[float]) -> list[float]:
    """Return p values that are corrected for their number, by Holm's step-down rule."""
    ordered = sorted(range(len(values)), key=values.__getitem__)
    corrected, largest = [0.0] * len(values), 0.0
    for rank, number in enumerate(ordered):
        largest = max(largest, min(1.0, (len(values) - rank) * values[number]))
        corrected[number] = largest
    return corrected


def scores_of(scores: list[Score], task: str, agent: str) -> list[float]:
    """Return what the runs of an agent on a task reached."""
    return [score.score for score in scores if (score.task, score.agent) == (task, agent)]


def compare(scores: list[Score], agent: str, others: list[str], tasks: list[str] | None, least: float) -> str:
    """Return a table of an agent against others: runs that succeed, and two tests.

    Args:
        scores: Final scores of all runs.
        agent: Agent that is said to be ahead.
        others: Agents it is compared with.
        tasks: Tasks; None takes all.
        least: Score above which a run is a success.
    """
    rows, tests = [], []
    for task in tasks or list(dict.fromkeys(score.task for score in scores)):
        for other in others:
            mine, theirs = (
                [run.score for run in scores if (run.task, run.agent) == (task, who)] for who in (agent, other)
            )
            if not mine or not theirs:
                missing = other if mine else agent
                raise UserError(f"there is no run of {missing} on {task} in this table")
            wins = [sum(value > least for value in values) for values in (mine, theirs)]
            # two-sided tests: of the counts of successes, and of the ranks of all scores
            table = [[wins[0], len(mine) - wins[0]], [wins[1], len(theirs) - wins[1]]]
            counts, ranks = fisher_exact(table).pvalue, mannwhitneyu(mine, theirs).pvalue
            rows.append((task, other, f"{wins[0]} of {len(mine)}", f"{wins[1]} of {len(theirs)}", counts, ranks))
            tests.append(float(counts))
    lines = [f"| task | against | {agent} | other | Fisher p | Holm | Mann-Whitney p |", "|---" * 7 + "|"]
    for (task, other, mine, theirs, counts, ranks), corrected in zip(rows, holm(tests), strict=True):
        lines.append(f"| {task} | {other} | {mine} | {theirs} | {counts:.3g} | {corrected:.3g} | {ranks:.3g} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, help="scores.csv of a comparison")
    parser.add_argument("--agent", default="epo", help="agent that is said to be ahead (default: epo)")
    parser.add_argument("--against", default="sapg,ppo", help="others, separated by commas (default: sapg,ppo)")
    parser.add_argument("--tasks", help="tasks, separated by commas (default: all)")
    parser.add_argument("--least", type=float, default=0.8, help="a run above this is a success (default: 0.8)")
    args = parser.parse_args()
    with exit_on_user_error("significance"):
        if not args.scores.is_file():
            raise UserError(f"there is no table {args.scores}: name the scores.csv of a comparison")
        final = [score for score in read_scores(args.scores) if score.kind == "final"]
        tasks = args.tasks.split(",") if args.tasks else None
        print(compare(final, args.agent, args.against.split(","), tasks, args.least))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
