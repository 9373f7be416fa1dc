"""rsl_rl's on-policy runner, with full-state checkpoints, clean stops, a guard and the population's numbers."""

from __future__ import annotations

import os
import signal
import statistics
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner

from epo_lab.base.errors import UserError
from epo_lab.base.files import link_file
from epo_lab.base.processes import launched_world_size, rank

from .checkpoint import BEST_NAME, prune_checkpoints, read_checkpoint, write_checkpoint
from .folder import CENSUS, LINEAGE
from .guard import GuardedEnv
from .logger import EpoLogger
from .records import Records
from .signals import StopSignal, StopTraining
from .state import (
    env_state,
    hidden_states,
    rng_state,
    set_env_state,
    set_hidden_states,
    set_rng_state,
)


class EpoRunner(OnPolicyRunner):
    """Trains what rsl_rl's runner trains; iterations are counted over the whole life of a run.

    Settings beyond rsl_rl's: ``keep_checkpoints`` (newest numbered checkpoints to keep, 0 keeps all) and
    ``guard_limit`` (iterations in a row with non-finite environments after which the run stops).
    """

    env: GuardedEnv
    logger: EpoLogger

    def __init__(
        self,
        env: VecEnv,
        train_cfg: dict[str, Any],
        log_dir: str | None = None,
        device: str = "cpu",
        metric: str | None = None,
    ) -> None:
        """Create the runner.

        Args:
            env: The environment.
            train_cfg: Runner, algorithm and model settings as a dict.
            log_dir: Run folder. Defaults to None, in which case nothing is logged or saved.
            device: Device of the networks.
            metric: Tag of the task's metric, shown while training. Defaults to None.
        """
        super().__init__(GuardedEnv(env, train_cfg.get("guard_limit", 20)), train_cfg, log_dir=log_dir, device=device)
        self._stop = StopSignal()
        self._folder = None if log_dir is None else Path(log_dir)
        self._env_restored = False
        self._best_score = -float("inf")
        self._census = Records()
        if self._population is not None:
            # the logger below takes the numbers itself, an iteration earlier than the extras could bring them
            self._population.emit_to_extras = False
        self.logger = EpoLogger(
            log_dir=log_dir,
            cfg=self.cfg,
            env_cfg=env.cfg,
            num_envs=env.num_envs,
            is_distributed=self.is_distributed,
            gpu_world_size=self.gpu_world_size,
            gpu_global_rank=self.gpu_global_rank,
            device=device,
            metric=metric,
            more_scalars=self._scalars,
            after_iteration=self._after_iteration,
        )
        self.logger.git_status_repos = [__file__]

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> signal.Signals | None:
        """Run up to this many more iterations and return the signal that ended them early, if one did."""
        self._open_records()
        with self._stop:
            try:
                super().learn(num_learning_iterations, init_at_random_ep_len and not self._env_restored)
            except StopTraining:
                self._save_and_close()
            # a cluster may send its signal twice
            self.logger.plot()
        return self._stop.received

    def save(self, path: str, infos: dict | None = None) -> None:
        """Save everything a resumed run needs; the file appears whole or not at all."""
        content = self.alg.save() | {
            "iter": self.current_learning_iteration,
            "infos": infos,
            "logger": self.logger.state(),
            "run_state": {
                "rng": rng_state(),
                "env": env_state(self.env),
                "hidden": hidden_states(self.alg),
                "metrics": None if self._population is None else self._population.state_dict(),
                "best_score": max(self._best_score, self._score()),
                "reset_envs": self.env.reset_count,
            },
        }
        write_checkpoint(Path(path), content)
        self.logger.save_model(path, self.current_learning_iteration)
        if self._population is not None:
            self.logger.show_population(self.current_learning_iteration)
        if self._score() > self._best_score:
            self._best_score = self._score()
            link_file(Path(path), Path(path).parent / BEST_NAME)
        prune_checkpoints(Path(path).parent, self.cfg.get("keep_checkpoints", 0))

    def load(
        self, path: str, load_cfg: dict | None = None, strict: bool = True, map_location: str | None = None
    ) -> dict:
        """Load the models for a new run, with a new population of these genes; a resumed run calls :meth:`resume`."""
        content = read_checkpoint(Path(path), map_location or self.device)
        for name in ("population_state", "pbt_state"):
            content.pop(name, None)
        self._load_algorithm(path, content, load_cfg, strict)
        return content["infos"]

    def resume(self, path: str) -> None:
        """Load a checkpoint of this very run and go on with the iteration after it.

        What belongs to single environments (their state, recurrent states, random numbers) is only restored in a run
        of one process: the checkpoint holds those of the first. Curricula are restored on all.
        """
        content = read_checkpoint(Path(path), self.device)
        self._load_algorithm(path, content, None, True)
        self.current_learning_iteration = content["iter"] + 1
        if "logger" in content:
            self.logger.load_state(content["logger"], content["iter"])
        state = content.get("run_state")
        if state is not None:
            self._best_score = state["best_score"]
            self.env.reset_count = state.get("reset_envs", 0)
            self._env_restored = set_env_state(self.env, state["env"], of_another=self.is_distributed)
            if not self.is_distributed:
                set_rng_state(state["rng"])
        if state is not None and self._env_restored:
            self.logger.load_running_episodes(content["logger"])
            set_hidden_states(self.alg, state["hidden"])
        if self._population is not None and state is not None:
            self._population.load_state_dict(state["metrics"], running_episodes=self._env_restored)
        if self._population is not None and not self._env_restored:
            self.alg.fitness.interrupt(forget=self.is_distributed)

    def _load_algorithm(self, path: str, content: dict[str, Any], load_cfg: dict | None, strict: bool) -> None:
        try:
            self.alg.load(content, load_cfg, strict)
        except (RuntimeError, KeyError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"checkpoint {path} does not fit this task and agent: {reason}") from None

    @property
    def _population(self) -> Any:
        """The population's metrics, if the algorithm has one."""
        return getattr(self.alg, "metrics", None)

    def _score(self) -> float:
        """Return how good the master is now; minus infinity if that is not known yet."""
        if self._population is not None:
            values = self._population.values
            by_task = "Master/true_objective" in values and self.alg.options.fitness != "return"
            # successes alone would prefer the start of a curriculum, where they are easy
            return values.get("Master/true_objective" if by_task else "Master/fitness", -float("inf"))
        return statistics.mean(self.logger.rewbuffer) if self.logger.rewbuffer else -float("inf")

    def _scalars(self) -> dict[str, float]:
        guard = {"Guard/reset_envs": float(self.env.reset_count)}
        return guard if self._population is None else {**self._population.values, **guard}

    def _after_iteration(self) -> None:
        """Record a census, mend environments and stop if asked to, on all processes alike."""
        agents = None if self._population is None else self._population.agents
        if agents is not None and agents["iteration"] == self.alg.iteration and self.logger.writer is not None:
            self._census.append(agents)
        self.env.end_iteration(self.current_learning_iteration, self._folder)
        asked = self._stop.received is not None
        if self.is_distributed:
            flag = torch.tensor([float(asked)], device=self.device)
            torch.distributed.all_reduce(flag)
            asked = bool(flag)
        if asked:
            raise StopTraining

    def _save_and_close(self) -> None:
        if self.logger.writer is not None and self._folder is not None:
            self.save(str(self._folder / f"model_{self.current_learning_iteration}.pt"))
            self.logger.stop_logging_writer()

    def _open_records(self) -> None:
        """Go on with the lineage and the censuses of this run."""
        if self._population is not None and self._folder is not None and not self.logger.disable_logs:
            self._folder.mkdir(parents=True, exist_ok=True)
            lineage = getattr(self.alg, "lineage_name", LINEAGE)
            for records, name in ((self.alg.lineage, lineage), (self._census, CENSUS)):
                # the algorithm counts finished iterations, the runner counts from zero
                records.open(self._folder / name, last_iteration=self.current_learning_iteration)

    def _configure_multi_gpu(self) -> None:
        """Join the other processes: over NCCL on GPUs as rsl_rl does, over gloo on CPUs."""
        self.gpu_world_size = launched_world_size()
        if self.gpu_world_size == 1 or torch.device(self.device).type != "cpu":
            super()._configure_multi_gpu()
            return
        self.is_distributed = True
        self.gpu_local_rank = int(os.getenv("LOCAL_RANK", "0"))
        self.gpu_global_rank = rank()
        self.cfg["multi_gpu"] = {
            "global_rank": self.gpu_global_rank,
            "local_rank": self.gpu_local_rank,
            "world_size": self.gpu_world_size,
        }
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo", rank=self.gpu_global_rank, world_size=self.gpu_world_size)
