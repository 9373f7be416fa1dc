"""Evolutionary Policy Optimization on rsl_rl's PPO.

K agents share one actor and one critic and differ by a gene. Each learns from its own environments; the master,
agent 0, also learns from the followers' data. From time to time the worst followers' genes are replaced by children of
the others. With one agent this is rsl_rl's PPO; without the genetic algorithm it is SAPG.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import nn

from epo_lab.algorithms.base import Algorithm, Held, Log, Part, load_parts, part_states
from epo_lab.algorithms.meters import EpisodeMeter, RatioMeter, fitness_quantiles, master_score, read_all
from epo_lab.base.clock import Clock
from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.keys import AGENT_ID, LOG, TIME_OUTS
from epo_lab.base.processes import (
    check_agreement,
    first_process_decides,
    first_process_object,
    mean_and_std,
    world_size,
)
from epo_lab.models.distribution import AgentGaussianDistribution
from epo_lab.models.hidden import HiddenStates
from epo_lab.population.assignment import check_division
from epo_lab.population.evolution import apply
from epo_lab.population.fitness import FitnessTracker
from epo_lab.population.genetics import Genetics, gene_spread, pairwise_distance
from epo_lab.storage.batch import Batch

from .calibration import divergence_factor, spread_genes
from .census import (
    census,
    choose_novel,
    follower_scalars,
    gradient_cosine,
    master_ratios,
    policies_in_the_same_states,
)
from .cpo import Attraction, Discriminator, Reverse
from .genome import GeneTable
from .loss import Loss, entropy_coefficients, mini_batch_loss
from .options import split_options
from .relabel import Values, choose_columns, fill_relabelled, offpolicy_scalars, value_as
from .schedule import KlSchedule
from .targets import gae_returns, nstep_returns
from .terms import Bounds, LossTerm, with_intrinsic
from .value_normalizer import ValueNormalizer, denormalized

LINEAGE, CENSUS = "lineage", "population"
"""Kinds of records: every generation, and now and then every agent by itself."""
AGREEMENT_INTERVAL = 100
"""Iterations between two looks at whether all processes hold the same genes."""


class EPO(Algorithm, PPO):
    """A population of PPO agents with a master that learns from all of them."""

    storage: Any
    """A :class:`~epo_lab.storage.rollout.SingleStorage` for one agent, a ``PopulationStorage`` for more."""
    actor: Any
    critic: Any
    transition: Any
    _raw_actor: Any
    genome: Any
    """The genes and what belongs to them; None with one agent."""

    def __init__(
        self,
        actor: Any,
        critic: Any,
        storage: RolloutStorage,
        *,
        agent_ids: torch.Tensor | None = None,
        max_episode_length: int = 1,
        seed: int = 0,
        rank: int = 0,
        **settings: Any,
    ) -> None:
        """Create the algorithm; :meth:`construct_algorithm` is how a runner does it.

        Args:
            actor: The actor; it owns the genes.
            critic: The critic.
            storage: Room for a roll-out.
            agent_ids: Agent of every environment. Defaults to None: one agent.
            max_episode_length: Length of a full episode [control steps].
            seed: Seed of everything the population draws.
            rank: Number of this process.
            settings: :class:`~.options.EpoOptions` and settings of rsl_rl's PPO.
        """
        self.options, ppo_settings = split_options(settings)
        PPO.__init__(self, actor, critic, storage, **ppo_settings)
        self.clock = Clock()
        self.num_agents = self.num_members = 1 if actor.genes is None else len(actor.genes)
        if self.num_agents > 1 and (self.rnd or self.symmetry):
            raise UserError(
                "RND and symmetry are not supported with more than one agent: leave them out with"
                " agent.algorithm.rnd_cfg=null agent.algorithm.symmetry_cfg=null, or use --agent ppo"
            )
        self.ids_cpu = torch.zeros(storage.num_envs, dtype=torch.long) if agent_ids is None else agent_ids.cpu()
        self.agent_ids = self.ids_cpu.to(self.device, copy=True)
        self._obs_ids = self.agent_ids.unsqueeze(-1)

        # Processes choose columns each for itself, but whole agents alike
        self._chooses_agents = self.options.off_policy.sampling in ("block", "symmetric")
        own = 0 if self._chooses_agents else rank
        self.column_generator = torch.Generator().manual_seed(seed * 1000 + own + 1)

        self.fitness = FitnessTracker(
            self.agent_ids,
            self.num_agents,
            source=self.options.fitness.source,
            min_coverage=self.options.fitness.min_coverage,
            min_episodes=self.options.fitness.min_episodes,
        )
        followers = torch.bincount(self.ids_cpu, minlength=self.num_agents)[1:]
        share = int(followers.min()) * world_size() if len(followers) else 0
        self.evolution = Genetics(
            self.options.evolution,
            self.num_agents,
            seed,
            share,
            episode_length=max_episode_length,
            gene_scale=self.options.genes.init_std,
        )
        self.genome = self._make_genome()

        self.value_normalizer = ValueNormalizer(self.device) if self.options.normalize_value else None
        self.settings_changed()
        self.terms = self._make_terms()

        self.guard = SkippedUpdates(self.options.max_skipped_updates)
        self.episodes = EpisodeMeter(self.agent_ids)
        self._ratios = RatioMeter(self.device)
        self._noted: dict[str, Any] = {}
        self._scalars: dict[str, float] = {}
        self._log = Log(LINEAGE, CENSUS)

    def settings_changed(self) -> None:
        """Derive what depends on settings that may change during a run."""
        shares = None if self.genome is None else self.genome.entropy_shares
        self._entropy_coef = entropy_coefficients(self.entropy_coef, self.options.entropy_coef_scale, shares)
        self._schedule = KlSchedule(self.options.kl_schedule, self.options.lr_min)
        self._bounds = Bounds(self.options.bounds_loss_coef) if self.options.bounds_loss_coef else None

    def _make_terms(self) -> list[LossTerm]:
        """Return what followers learn from besides (CPO)."""
        options, terms = self.options.diversity, []
        band = options.band()
        if self.num_agents == 1:
            return terms
        population = (self._raw_actor, self.storage)
        if options.reverse:
            terms.append(Reverse(self._raw_actor, options.reverse))
        if options.attraction > 0.0:
            terms.append(
                Attraction(
                    *population,
                    self.ids_cpu,
                    self.num_agents,
                    self._value_as,
                    self.column_generator,
                    beta=options.attraction,
                    temperature=options.temperature,
                    band=band,
                )
            )
        if options.adversarial > 0.0:
            terms.append(
                Discriminator(
                    *population,
                    self.agent_ids,
                    self.num_agents,
                    coef=options.adversarial,
                    hidden_dims=list(options.classifier_dims),
                    learning_rate=self.learning_rate,
                )
            )
        return terms

    def _make_genome(self) -> GeneTable | None:
        if self.num_agents == 1:
            return None
        distribution = self._raw_actor.distribution
        noise = distribution.log_std_param if isinstance(distribution, AgentGaussianDistribution) else None
        inherits = self.options.evolution.inherit_noise
        return GeneTable(self._raw_actor.genes, noise, self.optimizer, inherits=inherits)

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> EPO:
        """Build models, storage and algorithm from a runner's settings."""
        from .construct import construct

        return construct(obs, env, cfg, device)

    def train_mode(self) -> None:
        """Prepare for training; this is where a population that does not fit its environments is refused."""
        division = {"allow_uneven": self.options.allow_uneven, "master_share": self.options.master_share}
        check_division(self.storage.num_envs, self.num_agents, **division)
        PPO.train_mode(self)

    def eval_mode(self) -> None:
        """Prepare for playing."""
        PPO.eval_mode(self)

    # --- roll-out

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample an action for every environment from its agent."""
        actions = PPO.act(self, self._label(obs))
        self.transition.values = denormalized(self.transition.values, self.value_normalizer)
        return actions

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Record one step; fitness sees raw rewards, learning sees scaled ones."""
        self.fitness.step(rewards, dones, extras)
        self.episodes.step(rewards, dones, extras)
        if self.num_agents > 1:
            time_outs = extras.get(TIME_OUTS)
            stored = self.storage.time_outs[self.storage.step]
            stored.zero_() if time_outs is None else stored.copy_(time_outs.view(-1, 1))
        scale = self.options.reward_scale
        rewards = rewards if scale == 1.0 else scale * rewards
        last = self.storage.step == self.storage.num_transitions_per_env - 1
        if self.scalars_in_extras and last and self._scalars:
            extras[LOG] = {**extras.get(LOG, {}), **self._scalars}
        PPO.process_env_step(self, self._label(obs), rewards, dones, extras)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute targets and advantages of all rows, the relabelled ones included."""
        st, n = self.storage, self.storage.num_envs
        obs = self._label(obs)
        hidden = self.critic.get_hidden_state()
        last_values = denormalized(self.critic(obs).detach(), self.value_normalizer)

        # Generalised advantages, or n-step targets (EPO eq. 6)
        values = st.values[:, :n]
        # Intrinsic rewards are learned from by the agent that acted, and by nobody else
        data = (with_intrinsic(st.rewards, self.terms), values, st.dones, last_values, self.gamma)
        gae_returns(*data, self.lam, out=st.returns[:, :n])
        st.advantages[:, :n] = st.returns[:, :n] - values
        if self.options.critic_target == "nstep":
            nstep_returns(*data, self.options.nstep, out=st.returns[:, :n])
        # Note: back to where the roll-out ended; the next one goes on from there
        self.critic.reset(hidden_state=hidden)

        # Relabelled rows, and what the terms make of the roll-out
        if st.num_relabelled:
            self._relabel(obs, st.rewards)
        others = [term.prepare(obs, st.rewards) for term in self.terms]
        if self._census_due(self.clock.iterations + 1):
            self._noted |= self._distance_of_all()

        # Advantages of all rows together, those of the terms included, have mean 0 and standard deviation 1
        mean, std = mean_and_std(st.advantages, *(advantages for advantages in others if advantages is not None))
        if not self.normalize_advantage_per_mini_batch:
            st.advantages.sub_(mean).div_(std + 1e-8)
        for term in self.terms:
            term.normalize(mean, std)
        if self.value_normalizer is not None:
            self.value_normalizer.update(st.returns)

    def _relabel(self, last_obs: TensorDict, rewards: torch.Tensor) -> None:
        """Fill the relabelled columns, and the importance weights of their advantages (EPO eq. 4)."""
        st, options = self.storage, self.options.off_policy
        chosen = choose_columns(
            self.ids_cpu, self.num_agents, options.sampling, st.num_relabelled, self.column_generator
        )
        columns, labels = (part.to(self.device, non_blocking=True) for part in chosen)
        worth = self._value_as(columns, labels, last_obs, rewards, self.lam if options.target == "vtrace" else None)
        mu, behaviour = worth.ratios, tuple(params[:, columns] for params in st.distribution_params)
        fill_relabelled(st, columns, labels, worth, options.clip)
        kl = self.actor.get_kl_divergence(behaviour, worth.old.params)
        self._noted |= offpolicy_scalars(mu, kl, len(mu) * float((self.ids_cpu == 0).sum()))
        if st.importance is not None:
            torch.clamp(mu, max=options.mu_max, out=st.importance[:, st.num_envs :])

    def _distance_of_all(self) -> dict[str, torch.Tensor]:
        """Return how far all data of the followers are from the master (CPO, table 2)."""
        followers = (self.ids_cpu > 0).nonzero().flatten().to(self.device, non_blocking=True)
        return follower_scalars(master_ratios(self._raw_actor, self.storage, followers))

    def _value_as(
        self,
        columns: torch.Tensor,
        labels: torch.Tensor,
        last_obs: TensorDict,
        rewards: torch.Tensor,
        lam: float | None = None,
    ) -> Values:
        """Evaluate columns of the roll-out under other labels."""
        return value_as(
            self.storage,
            self.actor,
            self.critic,
            columns,
            labels,
            last_obs,
            rewards,
            gamma=self.gamma,
            normalizer=self.value_normalizer,
            stored_hidden=self.options.off_policy.hidden == "stored",
            lam=lam,
        )

    # --- update

    def learn(self) -> dict[str, float]:
        """Learn from the roll-out."""
        losses = PPO.update(self) if self.rnd or self.symmetry else self._update_networks()
        self.clock.iterations += 1
        self.clock.steps += self.storage.num_transitions_per_env
        self.clock.gradient_steps += self.num_learning_epochs * self.num_mini_batches
        return losses

    def _update_networks(self) -> dict[str, float]:
        """Run the epochs of PPO on all rows."""
        recurrent = self.actor.is_recurrent or self.critic.is_recurrent
        make = self.storage.recurrent_mini_batch_generator if recurrent else self.storage.mini_batch_generator
        rounds = (self.num_mini_batches, self.num_learning_epochs)
        sums = torch.zeros(3, device=self.device)
        for term in self.terms:
            term.begin(*rounds)
        for number, batch in enumerate(make(*rounds)):
            loss = self._mini_batch(number, batch)
            if self._step_optimizer(loss):
                sums += torch.stack([loss.value, loss.surrogate, loss.entropy]).detach()
            if self.num_agents > 1 and number >= (self.num_learning_epochs - 1) * self.num_mini_batches:
                self._ratios.add(batch, loss.ratio, self.clip_param)
        for term in self.terms:
            self._noted |= term.scalars()
        obs = self.storage.observations.flatten(0, 1)
        self.actor.update_normalization(obs)
        self.critic.update_normalization(obs)
        self.storage.clear()
        value, surrogate, entropy = (sums / (self.num_learning_epochs * self.num_mini_batches)).tolist()
        return {"value": value, "surrogate": surrogate, "entropy": entropy}

    def _mini_batch(self, number: int, batch: Batch) -> Loss:
        """Return the loss of a mini-batch, and adapt the learning rate to how far its policies have moved."""
        if self.normalize_advantage_per_mini_batch:
            with torch.no_grad():
                batch.advantages = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
        # Importance weights of the relabelled advantages (EPO eq. 4)
        if batch.importance is not None:
            batch.advantages = batch.importance * batch.advantages
        # Note: the storage keeps values in units of the return, the critic predicts normalised ones
        if self.value_normalizer is not None:
            batch.values = self.value_normalizer.normalize(batch.values)
            batch.returns = self.value_normalizer.normalize(batch.returns)
        # Weight lambda of the relabelled rows (EPO eqs. 5 and 10)
        if self.options.off_policy.weight != 1.0 and batch.relabelled is not None:
            batch.weights = torch.where(batch.relabelled, self.options.off_policy.weight, 1.0)

        device_type = torch.device(self.device).type
        with torch.autocast(device_type, enabled=self.use_mixed_precision, dtype=torch.bfloat16):
            self.actor(
                batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True
            )
            log_prob = self.actor.get_output_log_prob(batch.actions)
            for term in self.terms:
                term.adjust(batch, log_prob)
            values = self.critic(batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[1])
            if self.desired_kl is not None and self.schedule == "adaptive":
                self._adapt_learning_rate(number, batch)
            loss = mini_batch_loss(
                batch,
                log_prob,
                values,
                self.actor.output_entropy,
                clip=self.clip_param,
                value_coef=self.value_loss_coef,
                clip_value=self.use_clipped_value_loss,
                entropy_coef=self._entropy_coef,
                dual_clip=self.options.off_policy.dual_clip,
            )
            mean = self.actor.output_mean
            if self._bounds is not None:
                loss.total = loss.total + self._bounds.loss(batch, mean)
        if number == 0 and self._census_due(self.clock.iterations + 1):
            self._noted |= gradient_cosine(self._raw_actor, batch, loss)
        with torch.autocast(device_type, enabled=self.use_mixed_precision, dtype=torch.bfloat16):
            for term in self.terms:
                more = term.loss(batch, mean)
                if more is not None:
                    loss.total = loss.total + more
        return loss

    def _adapt_learning_rate(self, number: int, batch: Batch) -> None:
        with torch.inference_mode():
            params = tuple(self.actor.output_distribution_params)
            place = divmod(number, self.num_mini_batches)
            old = self._schedule.reference(*place, batch.old_distribution_params, params)
            kl = torch.mean(self.actor.get_kl_divergence(old, params))
        ends_epoch = place[1] == self.num_mini_batches - 1
        self.learning_rate = self._schedule.adapt(self.learning_rate, kl, self.desired_kl, ends_epoch=ends_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _step_optimizer(self, loss: Loss) -> bool:
        """Apply the gradient and return True, or skip it if it is not finite."""
        self.optimizer.zero_grad()
        loss.total.backward()
        if self.is_multi_gpu:
            self.reduce_parameters()
        actor_norm = nn.utils.clip_grad_norm_(self.actor.parameters(), self.max_grad_norm)
        critic_norm = nn.utils.clip_grad_norm_(self.critic.parameters(), self.max_grad_norm)
        finite = self.guard.check(actor_norm + critic_norm, self.clock)
        if finite:
            self.optimizer.step()
        else:
            self.optimizer.zero_grad()
        return finite

    # --- evolution

    def evolve(self) -> None:
        """Look at the population, replace whom the genetic algorithm replaces, and measure the iteration."""
        if self.num_agents > 1:
            if self.options.genes.target_kl is not None and self.clock.iterations == 1:
                self._calibrate_genes(self.options.genes.target_kl)
            if self._census_due(self.clock.iterations):
                self._take_census()
            if self.evolution.due(self.clock):
                self._next_generation()
            if self.clock.iterations % AGREEMENT_INTERVAL == 0:
                check_agreement(self.genome.genes.detach())
        self._scalars = self._measure()
        if "Population/kl_to_master" in self._scalars:
            for term in self.terms:
                term.follow(self._scalars["Population/kl_to_master"])

    def _calibrate_genes(self, target: float) -> None:
        """Move the followers towards or away from the master until their policies differ as wished."""
        states = (self._raw_actor, self.storage, self.agent_ids, self.num_agents)
        factor = first_process_object(divergence_factor(*states, target))
        spread_genes(self._raw_actor.genes, factor)
        self.evolution.rescale(factor)
        self._noted["Population/gene_factor"] = factor

    def _next_generation(self) -> None:
        """Let the genetic algorithm decide, on rank 0 for all, and write what it decided."""
        states = (self._raw_actor, self.storage, self.agent_ids, self.num_agents)
        choose = partial(choose_novel, *states)
        proposed = self.evolution.propose(self.fitness.compute(), self.genome, self.clock, choose)
        generation = first_process_object(proposed)
        if generation is None:
            return
        apply(generation, self.genome)
        self.settings_changed()
        moved = [] if generation.promoted is None else [0, generation.promoted]
        self.fitness.restart(sorted({*generation.slots, *moved}))
        self._log.add(LINEAGE, generation.record)

    def _census_due(self, iteration: int) -> bool:
        interval = self.options.census_interval
        return self.num_agents > 1 and interval > 0 and iteration % interval == 0

    def _take_census(self) -> None:
        policies = policies_in_the_same_states(self._raw_actor, self.storage, self.agent_ids, self.num_agents)
        scalars, record = census(*policies, self.genome.read(), self.fitness.compute().values)
        self._noted |= scalars
        ages = [self.clock.iterations - birth for birth in self.evolution.births]
        own = {"iteration": self.clock.iterations, "gene_id": list(self.evolution.ids), "gene_age": ages}
        self._log.add(CENSUS, own | record)

    # --- what others ask for

    def policy(self, member: int = 0) -> Any:
        """Return the actor; an export of it carries this member's gene."""
        model = copy.copy(self._raw_actor)
        model.export_agent = member
        return model if member else self._raw_actor

    def env_members(self) -> list[int]:
        """Return the agent of each environment."""
        return self.ids_cpu.tolist() if self.num_agents > 1 else []

    def scalars(self) -> dict[str, float]:
        """Return what is logged of the last iteration."""
        return self._scalars

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """Return generations and censuses since the last call."""
        return self._log.take()

    def score(self) -> float | None:
        """Return how good the master is."""
        return master_score(self._scalars, self.options.fitness)

    def interrupt(self, *, forget: bool) -> None:
        """Forget the running episodes."""
        self.fitness.interrupt(forget=forget)
        self.episodes.interrupt()
        HiddenStates([self.actor, self.critic]).forget()

    def _measure(self) -> dict[str, float]:
        """Turn all meters into floats."""
        values = self.episodes.take()
        fitness = self.fitness.compute().values
        if not fitness[0].isnan():
            values["Master/fitness"] = float(fitness[0])
        if self.num_agents > 1:
            values |= read_all(self._noted)
            values |= fitness_quantiles(fitness[1:])
            genes = self.genome.genes.detach()
            values["Population/gene_spread"] = gene_spread(genes)
            values["Population/gene_distance"] = pairwise_distance(genes)
            values |= self.evolution.scalars(self.clock) | self._ratios.take()
            self._noted = {}
        values["Guard/skipped_updates"] = float(self.guard.skipped)
        return values

    # --- state

    def memory(self) -> dict[str, list[Any]]:
        """Return networks, optimizer and roll-out."""
        return {"networks": [self._raw_actor, self.critic], "optimizer": [self.optimizer], "storage": [self.storage]}

    def parts(self) -> dict[str, Part]:
        """Return everything beside models and optimizer that a resumed run needs."""
        parts = {
            "clock": Part(self.clock),
            "columns": Part(Held(self._columns_state, self._load_columns), per_env=True),
            "fitness": Part(self.fitness, per_env=True),
            "evolution": Part(self.evolution),
            "guard": Part(self.guard),
            "episodes": Part(self.episodes, per_env=True),
            "hidden": Part(HiddenStates([self.actor, self.critic]), per_env=True),
        }
        if self.value_normalizer is not None:
            parts["value_normalizer"] = Part(self.value_normalizer, learned=True)
        if self.genome is not None:
            parts["genome"] = Part(self.genome)
        for term in self.terms:
            parts |= term.parts()
        return parts

    def _columns_state(self) -> dict[str, Any]:
        """Return whose the environments are, and the generator that chooses among them, and whose that is."""
        generator = self.column_generator.get_state()
        return {"agent_ids": self.ids_cpu, "generator": generator, "rank": self.gpu_global_rank}

    def _load_columns(self, state: dict[str, Any]) -> None:
        """Restore agents and, if it is this process's, the generator."""
        ids = state["agent_ids"].cpu()
        self.ids_cpu.copy_(ids)
        self.agent_ids.copy_(ids)
        self.episodes.find_master()
        if self.num_agents > 1:
            self.storage.labels[: len(ids)] = self.agent_ids
        if self._chooses_agents or self.gpu_global_rank == state.get("rank", 0):
            self.column_generator.set_state(state["generator"].cpu())

    def save(self) -> dict[str, Any]:
        """Return models and parts."""
        return PPO.save(self) | {"parts": part_states(self.parts())}

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load a checkpoint; one without the parts of a population begins a new one."""
        genes = loaded_dict["actor_state_dict"].get("genes")
        saved_agents = 1 if genes is None else len(genes)
        if saved_agents != self.num_agents:
            raise UserError(
                f"the checkpoint has {saved_agents} agents, this run {self.num_agents}:"
                f" set agent.algorithm.num_agents={saved_agents}"
            )
        loaded = PPO.load(self, loaded_dict, load_cfg, strict)
        if load_cfg is None or load_cfg.get("optimizer", False):
            states = loaded_dict.get("parts", {})
            columns = states.get("columns", {"agent_ids": ()})["agent_ids"]
            load_parts(self.parts(), states, same_envs=len(columns) == self.storage.num_envs)
            self.settings_changed()
        return loaded

    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's models and population seed."""
        PPO.broadcast_parameters(self)
        for term in self.terms:
            term.broadcast()
        self.evolution.seed = int(first_process_decides(torch.tensor([self.evolution.seed], device=self.device)))

    def _label(self, obs: TensorDict) -> TensorDict:
        """Return the observations with the agents that see them."""
        if self.num_agents == 1:
            return obs
        labelled = obs.clone(recurse=False)
        labelled[AGENT_ID] = self._obs_ids
        return labelled


class SkippedUpdates:
    """Counts gradient steps that were not finite; too many in a row end the run."""

    def __init__(self, most_in_a_row: int) -> None:
        """Create the guard.

        Args:
            most_in_a_row: How many in a row end the run.
        """
        self._most = most_in_a_row
        self.skipped = 0
        self._in_a_row = 0

    def check(self, norm: torch.Tensor, clock: Clock) -> bool:
        """Return whether a gradient of this norm may be applied."""
        if bool(torch.isfinite(norm)):
            self._in_a_row = 0
            return True
        self._in_a_row += 1
        self.skipped += 1
        if self._in_a_row >= self._most:
            raise NonFiniteUpdateError(
                f"{self._in_a_row} gradient steps in a row were not finite (iteration {clock.iterations})"
            )
        return False

    def state_dict(self) -> dict[str, int]:
        """Return the counters."""
        return {"skipped": self.skipped, "in_a_row": self._in_a_row}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the counters."""
        self.skipped, self._in_a_row = state["skipped"], state["in_a_row"]
