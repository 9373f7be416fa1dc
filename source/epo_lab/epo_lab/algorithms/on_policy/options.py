"""Everything that can be chosen about EPO, with its default and what it means."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated, Any

from epo_lab.base.errors import UserError
from epo_lab.base.options import POSITIVE, ROOT, Count, Positive, Rule, Weight, Whole, between, build, one_of, split
from epo_lab.population.fitness import FitnessOptions
from epo_lab.population.genetics import EvolutionOptions

from .relabel import SAMPLINGS

MAX_AGENTS = 1024
TARGETS = ("gae", "nstep")
GRADIENTS = ("both", "actor")


@dataclass
class PpoOptions:
    """Settings of rsl_rl's PPO, for what they may be; rsl_rl itself checks nothing."""

    num_learning_epochs: Whole = 5
    num_mini_batches: Whole = 4
    learning_rate: Positive = 1e-3
    schedule: Annotated[str, one_of(("adaptive", "fixed"))] = "adaptive"
    gamma: Annotated[float, between(0, 1)] = 0.99
    lam: Annotated[float, between(0, 1)] = 0.95
    entropy_coef: Weight = 0.0
    desired_kl: Annotated[float | None, POSITIVE] = 0.01
    max_grad_norm: Positive = 1.0
    optimizer: Annotated[str, one_of(("adam", "adamw", "sgd", "rmsprop"))] = "adam"
    value_loss_coef: Weight = 1.0
    use_clipped_value_loss: bool = True
    clip_param: Positive = 0.2
    normalize_advantage_per_mini_batch: bool = False


@dataclass
class GeneOptions:
    """The genes by which agents differ."""

    dim: Whole = 32
    """Length L of a gene. Default 32."""
    init_std: Positive = 1.0
    """Standard deviation of the first genes. Default 1.0."""
    target_kl: Annotated[float | None, POSITIVE] = None
    """Mean divergence of two agents' policies to which the genes are scaled after the first iteration, and mutation
    with them. Default None: they stay as drawn, which means another divergence on every task."""
    gradient: Annotated[str, one_of(GRADIENTS)] = "both"
    """Whose loss moves the genes: ``both`` (default, as in the paper) or ``actor``: the critic takes them as given."""


@dataclass
class OffPolicyOptions:
    """What the master learns from the followers' data."""

    sampling: Annotated[str, one_of(SAMPLINGS)] = "envs"
    """Data the master takes: ``envs`` (default, random columns), ``block`` (all columns of one random follower),
    ``all``, ``symmetric`` (every agent learns from one other), ``none``."""
    ratio: Whole = 1
    """Multiples of the master's own columns that ``envs`` and ``block`` take. Default 1."""
    target: Annotated[str, one_of(("one_step", "vtrace"))] = "one_step"
    """Targets and advantages of relabelled data: ``one_step`` (default, EPO eq. 8), or ``vtrace``, generalised
    advantages that end where the master would not have acted so (IMPALA)."""
    clip: Annotated[str, one_of(("fixed", "mu"))] = "fixed"
    """Clip region of the relabelled importance ratio: ``fixed`` (default), 1 +- clip around the behaviour policy;
    ``mu``, around the master's old policy, weighted by min(mu, mu_max) (EPO eq. 4)."""
    mu_max: Annotated[float, Rule(lambda value: value > 0, "positive")] = 10.0
    """Largest weight of ``mu``. Default 10; the paper has no bound (inf)."""
    weight: Weight = 1.0
    """Weight lambda of the relabelled rows (EPO eqs. 5, 10). Default 1.0."""
    dual_clip: Annotated[float | None, Rule(lambda value: value > 1, "larger than 1")] = None
    """Importance ratio from which on a relabelled row with a negative advantage has no gradient (dual-clip PPO, there
    3). Default None: none, so that a few rows with a large ratio can outweigh all others."""
    hidden: Annotated[str, one_of(("reroll", "stored"))] = "reroll"
    """Recurrent states of relabelled columns: ``reroll`` (default, rolled out again with the master's gene) or
    ``stored`` (the follower's, at every step)."""


@dataclass
class DiversityOptions:
    """What the followers learn besides (CPO)."""

    attraction: Weight = 0.0
    """Weight beta of the followers' loss on the master's data. Default 0: none."""
    temperature: Positive = 0.2
    """Temperature lambda of the weights exp(advantage / lambda) in that loss; smaller draws nearer. Default 0.2."""
    kl_band: tuple[Positive, ...] = ()
    """Divergences from the master, least and largest, between which the attraction adapts to hold the followers, as in
    ``[0.1, 1.0]``. Default empty: it does not adapt."""
    reverse: Weight = 0.0
    """How much of log(follower / master) is taken off the followers' advantages. Default 0."""
    adversarial: Weight = 0.0
    """Intrinsic reward of a follower for actions that a classifier knows to be its own, times their log-probability.
    Default 0."""
    classifier_dims: tuple[Whole, ...] = (256, 128, 64)
    """Hidden layers of the classifier that tells agents by their actions. Default 256-128-64."""

    def band(self) -> tuple[float, float] | None:
        """Return the least and the largest divergence, or None if there is no band."""
        if not self.kl_band:
            return None
        low, high = self.kl_band if len(self.kl_band) == 2 else (1.0, 0.0)
        if low >= high or self.attraction == 0.0:
            raise UserError(
                f"{ROOT}.diversity.kl_band must be two divergences, the smaller first, and needs an attraction:"
                f" {ROOT}.diversity.kl_band=[0.1,1.0] {ROOT}.diversity.attraction=0.001"
            )
        return low, high


@dataclass
class EpoOptions:
    """Keyword arguments of :class:`epo_lab.algorithms.EPO` beyond those of rsl_rl's PPO."""

    num_agents: Annotated[int | None, between(1, MAX_AGENTS)] = None
    """Number of agents K, 1 to 1,024. Default None: the largest K up to 64 that divides the environments and leaves at
    least 64 to each agent. K = 1 is rsl_rl's PPO to the last bit."""
    allow_uneven: bool = False
    """Whether the master gets the rest if the agents do not divide the environments. Default False: an error."""
    master_share: Annotated[float | None, Rule(lambda value: 0 < value < 1, "above 0 and below 1")] = None
    """Share of the environments that the master has; followers have equal parts of the others. Default None: as many as
    every follower (SAPG, EPO)."""
    genes: GeneOptions = field(default_factory=GeneOptions)
    off_policy: OffPolicyOptions = field(default_factory=OffPolicyOptions)
    diversity: DiversityOptions = field(default_factory=DiversityOptions)
    fitness: FitnessOptions = field(default_factory=FitnessOptions)
    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)

    # --- targets and loss
    critic_target: Annotated[str, one_of(TARGETS)] = "gae"
    """On-policy critic target: ``gae`` (default) or ``nstep`` (EPO eq. 6)."""
    nstep: Whole = 3
    """Rewards in an ``nstep`` target. Default 3."""
    entropy_coef_scale: Weight = 0.0
    """Entropy coefficients rise from ``entropy_coef`` (master) by half of this (last follower). They belong to the
    gene: a child has the mean of its parents', and one that is promoted keeps its own. Default 0."""
    bounds_loss_coef: Weight = 0.0
    """Weight of the squared excess of the action mean over +-1.1. Default 0."""
    normalize_value: bool = False
    """Whether the critic predicts normalised values. Default False."""
    reward_scale: Positive = 1.0
    """Factor on rewards for learning only, never for fitness or logs. Default 1.0."""
    lr_min: Positive = 1e-5
    """Least learning rate of the adaptive schedule. Default 1e-5."""
    kl_schedule: Annotated[str, one_of(("minibatch", "epoch"))] = "minibatch"
    """When the rate adapts: ``minibatch`` (default, rsl_rl) or ``epoch`` (rl_games)."""

    # --- logging and guards
    census_interval: Count = 50
    """Iterations between two closer looks at all agents (pairwise divergence, gradients). Default 50; 0: none."""
    max_skipped_updates: Whole = 20
    """Gradient steps in a row that may be skipped as non-finite before the run stops. Default 20."""


MOVED = {
    "latent_dim": "genes.dim",
    "latent_init_std": "genes.init_std",
    "offpolicy_sampling": "off_policy.sampling",
    "off_policy_ratio": "off_policy.ratio",
    "offpolicy_clip": "off_policy.clip",
    "mu_max": "off_policy.mu_max",
    "offpolicy_weight": "off_policy.weight",
    "offpolicy_hidden": "off_policy.hidden",
    "attraction": "diversity.attraction",
    "attraction_temperature": "diversity.temperature",
    "reverse_coef": "diversity.reverse",
    "adversarial_coef": "diversity.adversarial",
    "discriminator_hidden_dims": "diversity.classifier_dims",
    "fitness_min_coverage": "fitness.min_coverage",
    "fitness_min_episodes": "fitness.min_episodes",
    "fitness_floor": "evolution.floor",
    "ga_trigger": "evolution.trigger",
    "ga_gamma": "evolution.gamma",
    "ga_warmup_steps": "evolution.warmup_steps",
    "ga_interval_steps": "evolution.interval_steps",
    "ga_noise_guard": "evolution.noise_guard",
    "num_elites": "evolution.num_elites",
    "parents": "evolution.parents",
    "crossover": "evolution.crossover",
    "mutation": "evolution.mutation",
    "mutation_sigma": "evolution.mutation_sigma",
    "inherit_log_std": "evolution.inherit_noise",
}
"""Where options of version 0.1 are now."""
GONE = (
    "agent_assignment",
    "per_agent_log_std",
    "advantage",
    "fitness_mode",
    "ga_min_episodes_per_interval",
    "ga_max_age_checks",
    "on_replace_hidden",
    "reset_envs",
)
"""Options of version 0.1 that nobody set, or that did harm."""


def migrated(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of an algorithm with the names of version 0.1 replaced."""
    new: dict[str, Any] = {}
    for name, value in settings.items():
        path = MOVED.get(name, f"pbt.{name.removeprefix('pbt_')}" if name.startswith("pbt_") else name)
        if name == "fitness" and isinstance(value, str):
            path = "fitness.source"
        group, _, option = path.rpartition(".")
        if name not in GONE:
            (new.setdefault(group, {}) if group else new)[option] = value
    return new


def split_options(settings: dict[str, Any]) -> tuple[EpoOptions, dict[str, Any]]:
    """Return our options, checked, and the settings that are rsl_rl's."""
    own, others = split(EpoOptions, settings)
    return build(EpoOptions, own), others


def check_ppo(settings: dict[str, Any]) -> None:
    """Raise a :class:`UserError` if a setting of rsl_rl's PPO is of another type or out of range."""
    build(PpoOptions, split(PpoOptions, settings)[0])


def check_names(settings: dict[str, Any]) -> None:
    """Raise a :class:`UserError` if a setting is none of rsl_rl's PPO."""
    from rsl_rl.algorithms import PPO

    known = {*inspect.signature(PPO).parameters, "class_name", "share_cnn_encoders"}
    for name in settings.keys() - known:
        raise UserError(f"{ROOT}.{name} is no setting of this algorithm: another {ROOT}.class_name has it")


def default_num_agents(num_envs: int) -> int:
    """Return the largest number of agents up to 64 that divides the environments and leaves 64 or more to each."""
    return max((k for k in range(1, 65) if num_envs % k == 0 and num_envs // k >= 64), default=1)
