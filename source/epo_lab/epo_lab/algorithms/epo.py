"""Evolutionary Policy Optimization on rsl_rl's PPO.

K agents share one actor and one critic and differ by a gene. Each learns from its own environments; the master,
agent 0, also learns from the followers' data. From time to time the worst followers' genes are replaced by children of
the others. With one agent this is rsl_rl's PPO; without the genetic algorithm it is SAPG.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict
from torch import nn

from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.keys import AGENT_ID
from epo_lab.models.distribution import AgentGaussianDistribution
from epo_lab.population.assignment import check_division
from epo_lab.population.fitness import FitnessTracker
from epo_lab.population.genetics import Genetics
from epo_lab.runner.records import Records

from .attraction import Attraction, masters_log_prob, stay_near
from .census import gradient_cosine, take_census
from .discriminator import Discriminator
from .joint import broadcast_children, check_agreement, normalized, world_size
from .loss import Loss, entropy_coefficients, mini_batch_loss
from .metrics import Metrics
from .options import split_options
from .relabel import choose_columns, relabel_columns
from .replacement import replace_agents, restart_agents
from .schedule import KlSchedule
from .targets import gae_returns, nstep_returns
from .value_normalizer import ValueNormalizer


class EPO(PPO):
    """A population of PPO agents with a master that learns from all of them."""

    storage: Any
    """rsl_rl's storage for one agent, a :class:`~epo_lab.algorithms.storage.PopulationStorage` for more."""
    actor: Any
    critic: Any

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
        env: VecEnv | None = None,
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
            env: The environment, for ``reset_envs``.
            settings: :class:`~epo_lab.algorithms.options.EpoOptions` and settings of rsl_rl's PPO.
        """
        self.options, ppo_settings = split_options(settings)
        super().__init__(actor, critic, storage, **ppo_settings)
        num_envs = storage.num_envs
        self.num_agents = 1 if actor.genes is None else len(actor.genes)
        if self.num_agents > 1 and (self.rnd or self.symmetry):
            raise UserError("RND and symmetry are not supported with more than one agent: use num_agents=1")
        ids = torch.zeros(num_envs, dtype=torch.long) if agent_ids is None else agent_ids
        self.agent_ids = ids.to(self.device)
        self.fitness = FitnessTracker(
            self.agent_ids,
            self.num_agents,
            source=self.options.fitness,
            mode=self.options.fitness_mode,
            min_coverage=self.options.fitness_min_coverage,
            min_episodes=self.options.fitness_min_episodes,
        )
        self.genetics = Genetics(self.options.genetics(max_episode_length), self.num_agents, seed)
        self.lineage = Records()
        self.value_normalizer = ValueNormalizer(self.device) if self.options.normalize_value else None
        self.metrics = Metrics(self)
        self.iteration = 0
        """Finished calls of :meth:`update`."""
        self.ids_cpu = ids.cpu()
        self._obs_ids = self.agent_ids.unsqueeze(-1)
        self.env = None if env is None else weakref.ref(env)
        # processes choose columns each for itself, but whole agents alike
        self._chooses_agents = self.options.offpolicy_sampling in ("block", "symmetric")
        own = 0 if self._chooses_agents else rank
        self.column_generator = torch.Generator().manual_seed(seed * 1000 + own + 1)
        self.settings_changed()
        self.attraction = Attraction(self) if self.num_agents > 1 and self.options.attraction > 0.0 else None
        adversarial = self.num_agents > 1 and self.options.adversarial_coef > 0.0
        self.discriminator = Discriminator(self) if adversarial else None
        self._skipped_in_a_row = 0

    def settings_changed(self) -> None:
        """Derive what depends on settings that may change during a run."""
        scale = self.options.entropy_coef_scale
        self._entropy_coef = entropy_coefficients(self.entropy_coef, scale, self.num_agents, self.device)
        self._reverse = self.options.reverse_coef if self.num_agents > 1 else 0.0
        self._schedule = KlSchedule(self.options.kl_schedule, self.options.lr_min)

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> EPO:
        """Build models, storage and algorithm from a runner's settings."""
        from .construct import construct

        return construct(obs, env, cfg, device)

    def train_mode(self) -> None:
        """Prepare for training; this is where a population that does not fit its environments is refused."""
        check_division(self.storage.num_envs, self.num_agents, allow_uneven=self.options.allow_uneven)
        super().train_mode()

    # --- roll-out

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample an action for every environment from its agent."""
        actions = super().act(self._label(obs))
        if self.value_normalizer is not None:
            self.transition.values = self.value_normalizer.denormalize(self.transition.values)
        return actions

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Record one step; fitness sees raw rewards, learning sees scaled ones."""
        self.fitness.step(rewards, dones, extras)
        if self.num_agents > 1:
            time_outs = extras.get("time_outs")
            stored = self.storage.time_outs[self.storage.step]
            stored.zero_() if time_outs is None else stored.copy_(time_outs.view(-1, 1))
        self.metrics.step(rewards, dones, extras)
        scale = self.options.reward_scale
        rewards = rewards if scale == 1.0 else scale * rewards
        if self.discriminator is not None:
            rewards = rewards + self.discriminator.pay()
        super().process_env_step(self._label(obs), rewards, dones, extras)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute targets and advantages of all rows, the relabelled ones included."""
        st, n = self.storage, self.storage.num_envs
        obs = self._label(obs)
        hidden = self.critic.get_hidden_state()
        last_values = self.denormalized(self.critic(obs).detach())
        values = st.values[:, :n]
        data = (st.rewards, values, st.dones, last_values, self.gamma)
        gae_returns(*data, self.lam, out=st.returns[:, :n])
        st.advantages[:, :n] = st.returns[:, :n] - values
        if "nstep" in (self.options.critic_target, self.options.advantage):
            targets = torch.empty_like(values)
            nstep_returns(*data, self.options.nstep, out=targets)
            if self.options.advantage == "nstep":
                st.advantages[:, :n] = targets - values
            if self.options.critic_target == "nstep":
                st.returns[:, :n] = targets
        # back to where the roll-out ended: the next one goes on from there
        self.critic.reset(hidden_state=hidden)
        weights = self._relabel(obs) if self.num_agents > 1 and st.num_relabelled else None
        if self.attraction is not None:
            self.attraction.prepare(obs)
        if not self.normalize_advantage_per_mini_batch:
            st.advantages.copy_(normalized(st.advantages))
        if weights is not None:
            st.advantages[:, n:] *= weights
        if self.value_normalizer is not None:
            self.value_normalizer.update(st.returns)
            st.values.copy_(self.value_normalizer.normalize(st.values))
            st.returns.copy_(self.value_normalizer.normalize(st.returns))

    def _relabel(self, last_obs: TensorDict) -> torch.Tensor | None:
        """Fill the relabelled columns, and return the weights of their advantages if they have any (EPO eq. 4)."""
        count = self.storage.num_relabelled
        columns, labels = choose_columns(
            self.ids_cpu, self.num_agents, self.options.offpolicy_sampling, count, self.column_generator
        )
        return relabel_columns(self, columns.to(self.device), labels.to(self.device), last_obs)

    # --- update

    def update(self) -> dict[str, float]:
        """Learn from the roll-out, then let the population evolve."""
        if self.discriminator is not None:
            self.metrics.note({"Population/discriminator_loss": self.discriminator.learn()})
        losses = super().update() if self.rnd or self.symmetry else self._update_networks()
        self.iteration += 1
        self.fitness.end_iteration()
        if self.num_agents > 1:
            if self._census_due(self.iteration):
                self.metrics.counted(*take_census(self))
            self._evolve()
            if self.iteration % 100 == 0:
                check_agreement(self._raw_actor.genes.detach())
        self.metrics.end_iteration()
        return losses

    def _update_networks(self) -> dict[str, float]:
        """Run the epochs of PPO on all rows."""
        recurrent = self.actor.is_recurrent or self.critic.is_recurrent
        make = self.storage.recurrent_mini_batch_generator if recurrent else self.storage.mini_batch_generator
        sums = torch.zeros(3, device=self.device)
        rounds = (self.num_mini_batches, self.num_learning_epochs)
        attracted = iter(()) if self.attraction is None else self.attraction.batches(*rounds)
        for number, batch in enumerate(make(*rounds)):
            if self.normalize_advantage_per_mini_batch:
                with torch.no_grad():
                    batch.advantages = (batch.advantages - batch.advantages.mean()) / (batch.advantages.std() + 1e-8)
            device_type = torch.device(self.device).type
            with torch.amp.autocast(device_type, enabled=self.use_mixed_precision, dtype=torch.bfloat16):
                masters = masters_log_prob(self, batch) if self._reverse else None
                self.actor(
                    batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[0], stochastic_output=True
                )
                log_prob = self.actor.get_output_log_prob(batch.actions)
                if masters is not None:
                    stay_near(batch, log_prob.detach(), masters, self._reverse)
                values = self.critic(batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[1])
                if self.desired_kl is not None and self.schedule == "adaptive":
                    self._schedule.adapt(self, batch, tuple(self.actor.output_distribution_params), number)
                loss = mini_batch_loss(
                    batch,
                    log_prob,
                    values,
                    self.actor.output_entropy,
                    self.actor.output_mean,
                    clip=self.clip_param,
                    value_coef=self.value_loss_coef,
                    clip_value=self.use_clipped_value_loss,
                    entropy_coef=self._entropy_coef,
                    bounds_coef=self.options.bounds_loss_coef,
                    relabelled_weight=self.options.offpolicy_weight,
                )
            if number == 0 and self._census_due(self.iteration + 1):
                self.metrics.counted(gradient_cosine(self, batch, loss))
            if self.attraction is not None and (drawn := next(attracted, None)) is not None:
                with torch.amp.autocast(device_type, enabled=self.use_mixed_precision, dtype=torch.bfloat16):
                    loss.total = loss.total + self.attraction.loss(drawn)
            if self._step_optimizer(loss):
                sums += torch.stack([loss.value, loss.surrogate, loss.entropy]).detach()
            if number >= (self.num_learning_epochs - 1) * self.num_mini_batches:
                self.metrics.mini_batch(batch, loss, self.clip_param)
        if self.attraction is not None:
            self.metrics.note(self.attraction.measured())
        obs = self.storage.observations.flatten(0, 1)
        self.actor.update_normalization(obs)
        self.critic.update_normalization(obs)
        self.storage.clear()
        value, surrogate, entropy = (sums / (self.num_learning_epochs * self.num_mini_batches)).tolist()
        return {"value": value, "surrogate": surrogate, "entropy": entropy}

    def _census_due(self, iteration: int) -> bool:
        interval = self.options.census_interval
        return self.num_agents > 1 and interval > 0 and iteration % interval == 0

    def _step_optimizer(self, loss: Loss) -> bool:
        """Apply the gradient and return True, or skip it if it is not finite."""
        self.optimizer.zero_grad()
        loss.total.backward()
        if self.is_multi_gpu:
            self.reduce_parameters()
        actor_norm = nn.utils.clip_grad_norm_(self.actor.parameters(), self.max_grad_norm)
        critic_norm = nn.utils.clip_grad_norm_(self.critic.parameters(), self.max_grad_norm)
        if bool(torch.isfinite(actor_norm + critic_norm)):
            self.optimizer.step()
            self._skipped_in_a_row = 0
            return True
        self.optimizer.zero_grad()
        self._skipped_in_a_row += 1
        self.metrics.skipped_updates += 1
        if self._skipped_in_a_row >= self.options.max_skipped_updates:
            raise NonFiniteUpdateError(
                f"{self._skipped_in_a_row} gradient steps in a row were not finite (iteration {self.iteration})"
            )
        return False

    # --- evolution

    @property
    def steps(self) -> int:
        """Control steps per environment so far."""
        return self.iteration * self.storage.num_transitions_per_env

    def _evolve(self) -> None:
        """Look at the population if it is time, and replace whom the genetic algorithm replaces."""
        if not self.genetics.due(self.steps):
            return
        genes = self._raw_actor.genes
        fitness = self.fitness.compute()
        share = int(torch.bincount(self.ids_cpu, minlength=self.num_agents)[1:].min()) * world_size()
        generation = self.genetics.check(
            fitness, genes.detach().cpu(), steps=self.steps, iteration=self.iteration, envs_per_agent=share
        )
        self.metrics.checked(fitness, self.genetics)
        children = broadcast_children([] if generation is None else generation.children, genes.shape[1], self.device)
        if not children:
            return
        distribution = self._raw_actor.distribution
        inherits = self.options.inherit_log_std and isinstance(distribution, AgentGaussianDistribution)
        replace_agents(children, genes, distribution.log_std_param if inherits else None, self.optimizer)
        restart_agents(self, [child.slot for child in children])
        if generation is not None:
            self.lineage.append(generation.record)

    # --- state

    def save(self) -> dict[str, Any]:
        """Return all models and the state of the population."""
        content = super().save()
        content |= {name: part.state_dict() for name, part in self._parts().items()}
        content["population_state"] = {
            "iteration": self.iteration,
            "agent_ids": self.ids_cpu,
            "fitness": self.fitness.state_dict(),
            "genetics": self.genetics.state_dict(),
            "column_generator": self.column_generator.get_state(),
            "skipped_in_a_row": self._skipped_in_a_row,
        }
        return content

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict | None, strict: bool) -> bool:
        """Load a checkpoint; one without a population's state begins a new one."""
        state = loaded_dict.get("population_state")
        genes = loaded_dict["actor_state_dict"].get("genes")
        saved_agents = 1 if genes is None else len(genes)
        if saved_agents != self.num_agents:
            raise UserError(
                f"the checkpoint has {saved_agents} agents, this run {self.num_agents}:"
                f" set agent.algorithm.num_agents={saved_agents}"
            )
        iteration = super().load(loaded_dict, load_cfg, strict)
        whole = load_cfg is None or load_cfg.get("optimizer", False)
        for name, part in self._parts().items():
            if whole and name in loaded_dict:
                part.load_state_dict(loaded_dict[name])
        if state is not None and whole:
            self._load_population(state)
        return iteration

    def _parts(self) -> dict[str, Any]:
        """Return what has a state of its own beside models and optimizer, by its name in a checkpoint."""
        parts = {
            "value_normalizer_state_dict": self.value_normalizer,
            "discriminator_state_dict": self.discriminator,
            "attraction_state_dict": None if self.attraction is None else self.attraction.returns,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _load_population(self, state: dict[str, Any]) -> None:
        self.iteration = state["iteration"]
        self.genetics.load_state_dict(state["genetics"])
        self._skipped_in_a_row = state["skipped_in_a_row"]
        ids = state["agent_ids"].cpu()
        if len(ids) != self.storage.num_envs:
            # what belongs to single environments begins anew
            return
        self.ids_cpu.copy_(ids)
        self.agent_ids.copy_(ids)
        if self.num_agents > 1:
            self.storage.labels[: len(ids)] = self.agent_ids
        self.metrics.find_master()
        self.fitness.load_state_dict(state["fitness"])
        if self._chooses_agents or self.gpu_global_rank == 0:
            self.column_generator.set_state(state["column_generator"].cpu())

    def broadcast_parameters(self) -> None:
        """Give all processes rank 0's models and population seed."""
        super().broadcast_parameters()
        if self.discriminator is not None:
            self.discriminator.broadcast()
        seed = torch.tensor([self.genetics.seed], device=self.device)
        torch.distributed.broadcast(seed, src=0)
        self.genetics.seed = int(seed)

    def _label(self, obs: TensorDict) -> TensorDict:
        """Return the observations with the agents that see them."""
        if self.num_agents == 1:
            return obs
        labelled = obs.clone(recurse=False)
        labelled[AGENT_ID] = self._obs_ids
        return labelled

    def denormalized(self, values: torch.Tensor) -> torch.Tensor:
        """Return values in units of the return."""
        return values if self.value_normalizer is None else self.value_normalizer.denormalize(values)
