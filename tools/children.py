"""Where the children of each operator go: which basins of the deceptive diagnostic they reach that no agent is in.

./isaaclab.sh -p tools/children.py RUN_FOLDER [RUN_FOLDER ...] [--iteration 50]

Takes checkpoints of ``Epo-Diag-Deceptive-v0``, lets every operator make children of the population as it was then, and
follows them through one episode with the noise that newborn agents have.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from epo_lab.base.errors import UserError, exit_on_user_error
from epo_lab.cli.arguments import Parser
from epo_lab.diagnostics.deceptive import BEST, DISTANCE, WIDTH, DeceptiveEnv
from epo_lab.population.genetics import EvolutionOptions, breed
from epo_lab.population.mutation import mutation_scale
from epo_lab.population.novelty import most_novel

CHILDREN, EPISODES = 120, 4
"""Children of an operator for each population, and episodes that each of them gets."""
OPERATORS: dict[str, dict[str, Any]] = {
    "average, mutation 0.1 (EPO)": {"crossover": "average", "mutation": "absolute", "mutation_sigma": 0.1},
    "uniform, no mutation": {"crossover": "uniform", "mutation": "none"},
    "uniform, spread kept": {"crossover": "uniform", "mutation": "keep_spread"},
    "immigrants": {"immigrants": 1.0},
    "immigrants, twice as far": {"immigrants": 1.0, "immigrant_std": 2.0},
    "immigrants, four times as far": {"immigrants": 1.0, "immigrant_std": 4.0},
    "immigrants, the most novel of 64": {"immigrants": 1.0, "candidates": 64},
    "immigrants, the most novel of 64, twice as far": {"immigrants": 1.0, "candidates": 64, "immigrant_std": 2.0},
}


class Population:
    """The actor of a checkpoint, for genes of anybody."""

    def __init__(self, path: Path) -> None:
        """Read a checkpoint."""
        state = torch.load(path, weights_only=True, map_location="cpu")
        actor = state["actor_state_dict"]
        if "genes" not in actor or actor["mlp.0.weight"].shape[1] - actor["genes"].shape[1] != 3:
            raise UserError(f"{path} is no population of Epo-Diag-Deceptive-v0")
        self.genes = actor["genes"]
        self.gene_scale = state["parts"]["evolution"]["_gene_scale"]
        self._layers = [(actor[f"mlp.{i}.weight"], actor[f"mlp.{i}.bias"]) for i in (0, 2, 4)]
        self.noise = float(actor["distribution.log_std_param"].exp().mean())
        # States that agents visit, and basins that they end in without noise
        self.states = self._states()
        self.taken = self.basins(self.genes, 0.0, 1)[1].any(dim=0)

    def act(self, obs: torch.Tensor, genes: torch.Tensor) -> torch.Tensor:
        """Return the mean actions of some genes."""
        hidden = torch.cat([obs, genes], dim=-1)
        for number, layer in enumerate(self._layers):
            hidden = functional.linear(hidden, *layer)
            hidden = functional.elu(hidden) if number < 2 else hidden
        return hidden

    @torch.no_grad()
    def _states(self, every: int = 6) -> torch.Tensor:
        """Return observations of one episode of every agent, with noise."""
        env = DeceptiveEnv(len(self.genes))
        generator, seen = torch.Generator().manual_seed(0), []
        for _ in range(env.horizon - 1):
            seen.append(env.observe().clone())
            actions = self.act(seen[-1], self.genes)
            env.step(actions + self.noise * torch.randn(actions.shape, generator=generator))
        return torch.cat(seen[::every])

    @torch.no_grad()
    def basins(self, genes: torch.Tensor, noise: float, episodes: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return in which basins genes have been, and in which they are at the end. Shapes are (genes, 8)."""
        rows = genes.repeat_interleave(episodes, dim=0)
        env = DeceptiveEnv(len(rows))
        generator = torch.Generator().manual_seed(0)
        visited = torch.zeros(len(rows), len(env.centers), dtype=torch.bool)
        inside = visited
        for _ in range(env.horizon - 1):
            actions = self.act(env.observe(), rows)
            env.step(actions + noise * torch.randn(actions.shape, generator=generator))
            inside = torch.cdist(env.state["position"], env.centers) < WIDTH
            visited |= inside
        return visited.view(len(genes), episodes, -1).any(dim=1), inside.view(len(genes), episodes, -1).any(dim=1)

    def children(self, operator: dict[str, Any]) -> torch.Tensor:
        """Return children that an operator makes of this population. Shape is (CHILDREN, L)."""
        cfg = EvolutionOptions(num_elites=0.6, parents="elite", **operator)
        number = len(self.genes) - 1 - cfg.count_elites(len(self.genes))
        sigma = cfg.mutation_sigma * self.gene_scale
        scale = mutation_scale(self.genes, cfg.mutation, sigma, target=self.gene_scale, num_children=number)
        made: list[torch.Tensor] = []
        while len(made) < CHILDREN:
            # any follower may be an elite: which of them are the fittest is drawn anew for every event
            draw = torch.Generator().manual_seed(len(made))
            fitness = torch.randperm(len(self.genes), generator=draw).float()
            _, born = breed(
                fitness, self.genes, cfg, scale, 0, len(made), gene_scale=self.gene_scale, choose=self.most_novel
            )
            made += [child.gene for child in born]
        return torch.stack(made[:CHILDREN])

    @torch.no_grad()
    def most_novel(self, candidates: torch.Tensor, count: int) -> list[int]:
        """Return the candidates whose policies differ most from all agents' in states that these visit."""
        if len(candidates) == count:
            return list(range(count))

        def means(genes: torch.Tensor) -> torch.Tensor:
            rows = genes.repeat_interleave(len(self.states), dim=0)
            return self.act(self.states.repeat(len(genes), 1), rows).view(len(genes), len(self.states), -1)

        return most_novel(means(self.genes), means(candidates), torch.full((2,), self.noise), count)


def table(paths: list[Path]) -> dict[str, torch.Tensor]:
    """Return for every operator: share of children in a basin of nobody's, in the best one, and basins reached."""
    populations = [Population(path) for path in paths]
    found = {}
    for name, operator in OPERATORS.items():
        results = []
        for population in populations:
            # a child of two agents has their noise, an immigrant the first one
            noise = 1.0 if operator.get("immigrants") else population.noise
            visited, _ = population.basins(population.children(operator), noise, EPISODES)
            new = visited & ~population.taken
            reached = visited.float().mean(dim=0) > 0.01
            results.append([new.any(dim=1).float().mean(), new[:, BEST].float().mean(), reached.sum()])
        found[name] = torch.tensor(results).mean(dim=0)
    return found


def main() -> int:
    """Parse the command line and print the table."""
    parser = Parser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of Epo-Diag-Deceptive-v0 with a population")
    parser.add_argument("--iteration", type=int, default=50, help="checkpoint to look at (default: %(default)s)")
    args = parser.parse_args()
    with exit_on_user_error("children"):
        paths = [run / f"model_{args.iteration}.pt" for run in args.runs]
        for path in paths:
            if not path.is_file():
                raise UserError(f"{path} does not exist; --iteration names another checkpoint")
        print(f"{len(paths)} populations at iteration {args.iteration}; basins are {DISTANCE} away, {WIDTH} wide")
        print("| operator | children in a basin of nobody's | in the best, if nobody is | basins reached, of 8 |")
        print("|---|---|---|---|")
        for name, (new, best, reached) in table(paths).items():
            print(f"| {name} | {new:.1%} | {best:.1%} | {reached:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
