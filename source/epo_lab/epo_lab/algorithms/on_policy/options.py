"""Everything that can be chosen about EPO, with its default and what it means."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from epo_lab.base.errors import UserError
from epo_lab.population.assignment import LAYOUTS
from epo_lab.population.fitness import MODES
from epo_lab.population.genetics import GeneticsCfg

from .relabel import SAMPLINGS

MAX_AGENTS = 1024


@dataclass
class EpoOptions:
    """Keyword arguments of :class:`epo_lab.algorithms.EPO` beyond those of rsl_rl's PPO."""

    # --- population
    num_agents: int | None = None
    """Number of agents K, 1 to 1,024. Default None: the largest K up to 64 that divides the environments and leaves at
    least 64 to each agent. K = 1 is rsl_rl's PPO to the last bit."""
    agent_assignment: str = "shuffled"
    """Which environments an agent gets: ``shuffled`` (default), ``block`` or ``interleaved``."""
    allow_uneven: bool = False
    """Whether the master gets the rest if the agents do not divide the environments. Default False: an error."""
    latent_dim: int = 32
    """Length L of a gene. Default 32."""
    latent_init_std: float = 1.0
    """Standard deviation of the first genes. Default 1.0."""
    per_agent_log_std: bool = True
    """Whether every agent has its own action noise. Default True."""

    # --- what the master learns from
    offpolicy_sampling: str = "envs"
    """Follower data the master learns from: ``envs`` (default, random columns), ``block`` (all columns of one random
    follower), ``all``, ``symmetric`` (every agent learns from one other), ``none``."""
    off_policy_ratio: int = 1
    """Multiples of the master's own columns that ``envs`` and ``block`` take. Default 1."""
    offpolicy_clip: str = "fixed"
    """Clip region of the relabelled ratio: ``fixed`` (default), 1 +- clip around the behaviour policy; ``mu``, around
    the master's old policy, weighted by min(mu, mu_max) (EPO eq. 4)."""
    mu_max: float = 10.0
    """Largest weight of ``mu``. Default 10; the paper has no bound (inf)."""
    offpolicy_weight: float = 1.0
    """Weight lambda of the relabelled rows (EPO eqs. 5, 10). Default 1.0."""
    offpolicy_hidden: str = "reroll"
    """Recurrent states of relabelled columns: ``reroll`` (default, rolled out again with the master's gene) or
    ``stored`` (the follower's, at every step)."""

    # --- what the followers learn besides (CPO)
    attraction: float = 0.0
    """Weight beta of the followers' loss on the master's data. Default 0: none."""
    attraction_temperature: float = 0.2
    """Temperature lambda of the weights exp(advantage / lambda) in that loss; smaller draws nearer. Default 0.2."""
    reverse_coef: float = 0.0
    """How much of log(follower / master) is taken off the followers' advantages. Default 0."""
    adversarial_coef: float = 0.0
    """Reward of a follower for actions that are known to be its own, times their log-probability. Default 0."""
    discriminator_hidden_dims: tuple[int, ...] = (256, 128, 64)
    """Hidden layers of the network that tells agents by their actions. Default 256-128-64."""

    # --- targets and loss
    critic_target: str = "gae"
    """On-policy critic target: ``gae`` (default) or ``nstep`` (EPO eq. 6)."""
    nstep: int = 3
    """Rewards in an ``nstep`` target. Default 3."""
    advantage: str = "gae"
    """On-policy advantage: ``gae`` (default) or ``nstep``, the ``nstep`` target minus the value."""
    entropy_coef_scale: float = 0.0
    """Entropy coefficients rise from ``entropy_coef`` (master) by half of this (last follower). Default 0."""
    bounds_loss_coef: float = 0.0
    """Weight of the squared excess of the action mean over +-1.1. Default 0."""
    normalize_value: bool = False
    """Whether the critic predicts normalised values. Default False."""
    reward_scale: float = 1.0
    """Factor on rewards for learning only, never for fitness or logs. Default 1.0."""
    lr_min: float = 1e-5
    """Least learning rate of the adaptive schedule. Default 1e-5."""
    kl_schedule: str = "minibatch"
    """When the rate adapts: ``minibatch`` (default, rsl_rl) or ``epoch`` (rl_games)."""

    # --- fitness
    fitness: str = "return"
    """Fitness of an episode: ``return`` (default) or ``extras:<key>``, a per-environment value at the episode's end."""
    fitness_mode: str = "last"
    """``last`` (default, mean of the last episodes), ``ema`` or ``interval_max``."""
    fitness_min_coverage: float = 0.5
    """Share of an agent's environments that must have finished an episode before it is ranked. Default 0.5."""
    fitness_min_episodes: int = 1
    """Episodes an environment must finish before it counts. Default 1."""
    fitness_floor: float | None = None
    """Least scale of eq. 3. Default None: 5 % of the largest fitness seen."""

    # --- genetic algorithm
    ga_trigger: str = "eq3"
    """``eq3`` (default), ``interval`` (at every check) or ``off``."""
    ga_gamma: float = 0.3
    """Relative spread of eq. 3 that fires: 0.3 (default) for manipulation, 0.5 for locomotion."""
    ga_warmup_steps: int = 8138
    """Control steps per environment before the first check. Default 8,138."""
    ga_interval_steps: int = 814
    """Control steps per environment between checks, at least 1.25 full episodes. Default 814."""
    ga_min_episodes_per_interval: float = 1.25
    """Full episodes that an interval lasts at least. Default 1.25."""
    ga_max_age_checks: int = 0
    """Force an event after so many checks without one. Default 0: never."""
    ga_noise_guard: bool | None = None
    """Whether the spread must exceed what noise gives. Default None: if an agent has under 64 environments."""
    num_elites: float | None = None
    """Followers that survive an event; below 1, their share. Default None: all but one (K - 2)."""
    parents: str = "elite"
    """``elite`` (default, two random elites), ``top2`` or ``fitness``."""
    crossover: str = "average"
    """``average`` (default), ``uniform``, ``fitness_weighted``, or a function of one's own as ``module:function``."""
    mutation: str = "absolute"
    """``absolute`` (default), ``relative``, ``variance_preserving`` or ``none``."""
    mutation_sigma: float = 0.1
    """Size of the mutation, in ``latent_init_std`` (``absolute``) or in spreads (``relative``). Default 0.1."""
    inherit_log_std: bool = True
    """Whether a child takes the mean action noise of its parents. Default True."""
    on_replace_hidden: str = "keep"
    """Recurrent states of a replaced agent's environments: ``keep`` (default) or ``zero``."""
    reset_envs: bool = False
    """Whether the episodes of a replaced agent end at the next step. Default False."""

    # --- logging
    census_interval: int = 50
    """Iterations between two closer looks at all agents (pairwise divergence, gradients). Default 50; 0: none."""

    # --- guards
    max_skipped_updates: int = 20
    """Gradient steps in a row that may be skipped as non-finite before the run stops. Default 20."""

    def __post_init__(self) -> None:
        """Check every value."""
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"{name} '{getattr(self, name)}' is none of {', '.join(known)}")
        for name in ("latent_init_std", "reward_scale", "lr_min", "mu_max", "attraction_temperature"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name} must be positive, not {getattr(self, name)}")
        for name in (
            "offpolicy_weight",
            "attraction",
            "reverse_coef",
            "adversarial_coef",
            "entropy_coef_scale",
            "bounds_loss_coef",
            "mutation_sigma",
            "ga_gamma",
            "census_interval",
        ):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                raise UserError(f"{name} must not be negative, not {getattr(self, name)}")
        for name in ("nstep", "off_policy_ratio", "fitness_min_episodes", "latent_dim", "max_skipped_updates"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.num_agents is not None and not 1 <= self.num_agents <= MAX_AGENTS:
            raise UserError(f"num_agents must be between 1 and {MAX_AGENTS}, not {self.num_agents}")
        if not 0 < self.fitness_min_coverage <= 1:
            raise UserError(f"fitness_min_coverage must be above 0 and at most 1, not {self.fitness_min_coverage}")
        if self.fitness != "return" and not self.fitness.startswith("extras:"):
            raise UserError(f"fitness '{self.fitness}' is neither 'return' nor 'extras:<key>'")

    def genetics(self, max_episode_length: int) -> GeneticsCfg:
        """Return the settings of the genetic algorithm; an interval is never shorter than the episodes it judges."""
        least = math.ceil(self.ga_min_episodes_per_interval * max_episode_length)
        return GeneticsCfg(
            trigger=self.ga_trigger,
            gamma=self.ga_gamma,
            warmup_steps=self.ga_warmup_steps,
            interval_steps=max(self.ga_interval_steps, least),
            num_elites=self.num_elites,
            parents=self.parents,
            crossover=self.crossover,
            mutation=self.mutation,
            mutation_sigma=self.mutation_sigma * (self.latent_init_std if self.mutation == "absolute" else 1.0),
            fitness_floor=self.fitness_floor,
            noise_guard=self.ga_noise_guard,
            max_age_checks=self.ga_max_age_checks,
        )


_CHOICES = {
    "agent_assignment": LAYOUTS,
    "offpolicy_sampling": SAMPLINGS,
    "offpolicy_clip": ("fixed", "mu"),
    "offpolicy_hidden": ("reroll", "stored"),
    "critic_target": ("gae", "nstep"),
    "advantage": ("gae", "nstep"),
    "kl_schedule": ("minibatch", "epoch"),
    "fitness_mode": MODES,
    "on_replace_hidden": ("keep", "zero"),
}

OPTION_NAMES = tuple(option.name for option in fields(EpoOptions))


def split_options(settings: dict[str, Any]) -> tuple[EpoOptions, dict[str, Any]]:
    """Return our options, checked, and the settings that are rsl_rl's."""
    ours = {name: value for name, value in settings.items() if name in OPTION_NAMES}
    return EpoOptions(**ours), {name: value for name, value in settings.items() if name not in OPTION_NAMES}


def default_num_agents(num_envs: int) -> int:
    """Return the largest number of agents up to 64 that divides the environments and leaves 64 or more to each."""
    return max((k for k in range(1, 65) if num_envs % k == 0 and num_envs // k >= 64), default=1)
