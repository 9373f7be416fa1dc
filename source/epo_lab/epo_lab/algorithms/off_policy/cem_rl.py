"""CEM-RL: a population of TD3 actors around a mean, half of which learn by gradients before they are judged.

All members fill one replay and share one critic. A generation is: half of the members take gradient steps with the
common critic, all play whole episodes, and the cross-entropy method moves mean and variance to the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict

from epo_lab.base.options import Whole
from epo_lab.models.members import StackedPolicies
from epo_lab.population.cem import CemCfg, CrossEntropy
from epo_lab.population.first_episodes import GenerationFitnessOptions

from .gradient import GradientStep
from .options import Td3Options
from .population import PopulationOffPolicy, copy_row
from .td3 import TD3

MOST_UPDATES = 100_000
"""Most gradient steps of a generation."""


@dataclass
class CemRlOptions(Td3Options):
    """Settings of :class:`epo_lab.algorithms.CemRl`."""

    num_agents: Whole = 10
    """Members n, which divide the environments. Default 10."""
    target_actor: bool = False
    """Whether targets come from a policy that follows. Default False: from the member that learns."""
    cem: CemCfg = field(default_factory=CemCfg)
    fitness: GenerationFitnessOptions = field(default_factory=GenerationFitnessOptions)


class Learners:
    """Some members as actors that learn together: every one sees the same batch."""

    def __init__(self, policies: StackedPolicies, template: MLPModel, rows: torch.Tensor) -> None:
        """Take their parameters, of which a copy learns.

        Args:
            policies: The population that they belong to.
            template: Model with their normaliser.
            rows: Their parameters. Shape is (P, D).
        """
        self.rows = torch.nn.Parameter(rows.clone())
        self.distribution: Any = template.distribution
        self._policies, self._template = policies, template

    def output(self, obs: TensorDict) -> torch.Tensor:
        """Return what their networks say. Shape is (P, B, out)."""
        inputs = MLPModel.get_latent(self._template, obs)
        return self._policies.network(self.rows, inputs.expand(len(self.rows), -1, -1))


class CemRl(PopulationOffPolicy, TD3):
    """The cross-entropy method on the weights of TD3 actors."""

    options_class = CemRlOptions
    options: CemRlOptions
    evolution: CrossEntropy
    _judges: bool = False
    """Whether members are being judged: not while actions are random."""

    def make_evolution(self, theta: torch.Tensor, shapes: list[torch.Size], seed: int) -> CrossEntropy:
        """Return the cross-entropy method."""
        return CrossEntropy(self.options.cem, theta, self.options.num_agents, seed)

    def learn(self) -> dict[str, float]:
        """Normalise; gradient steps are taken between generations."""
        self.take_in()
        self._credit += self.options.updates_per_step * self._steps
        return self.end_iteration()

    def evolve(self) -> None:
        """Begin the next generation if all members have been judged."""
        if not self._judges:
            if not self.warming_up:
                self._judges = True
                self._take_gradients()
                self.members.begin()
            return
        fitness = self.members.fitness.complete()
        if fitness is not None:
            self.next_generation(fitness)
            self._told["Population/parameter_spread"] = self.evolution.spread()
            self._told["Master/fitness"] = self._told["Population/fitness_mean"]
            self._take_gradients()
            self.members.begin()
        self._scalars |= self._told

    def _take_gradients(self) -> None:
        """Let half of the members learn, each with an optimizer of its own that begins anew."""
        number = self.options.num_agents // 2
        updates = min(int(self._credit), MOST_UPDATES)
        self._credit = 0.0
        options, rows = self.options, self.members.policies.rows
        if number and updates:
            # Critic: as many steps as control steps of the last generation, in turn with each learning member's policy
            for member in range(number):
                copy_row(rows[member], self.actor)
                share = (member + 1) * updates // number - member * updates // number
                for _ in range(share):
                    self.learner.critic_update(self._batch(), self.return_scale.factor)
            # Actors: the same number of steps each, all in one call
            learners = Learners(self.members.policies, self.actor, rows[:number])
            step = GradientStep([learners.rows], options.learning_rate, weight_decay=options.weight_decay)
            for _ in range(updates):
                self.learner.actor_update(self._batch(), learners, step)
            rows[:number] = learners.rows.detach()
            self.clock.gradient_steps += updates
        # the master is the mean of the population
        copy_row(self.evolution.mean, self.actor)

    def _batch(self) -> Any:
        options = self.options
        return self.replay.sample(options.batch_size, options.n_step, options.gamma)

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load the master and, if everything is asked for, all else."""
        loaded = super().load(loaded_dict, load_cfg, strict)
        self._judges = self.clock.steps > 0 and not self.warming_up
        return loaded
