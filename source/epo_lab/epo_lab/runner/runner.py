"""The training loop: collect, learn, evolve, mend, log, save, stop."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from epo_lab.algorithms.base import Algorithm
from epo_lab.algorithms.stock import StockAlgorithm
from epo_lab.base.errors import LostProcessError
from epo_lab.base.memory import gigabytes, held_bytes
from epo_lab.base.processes import (
    first_process_object,
    heartbeat,
    join,
    launched_world_size,
    max_over_processes,
    meet,
    rank,
)

from .checkpoint import Checkpoints, go_back, mend_run, read_checkpoint
from .guard import GuardedEnv
from .logger import EpoLogger
from .records import RecordFiles
from .signals import StopSignal

BROKEN_CONNECTION = ("Connection closed by peer", "Connection reset by peer", "Timed out waiting")
"""How gloo says that a collective has failed; NCCL and the store have errors of their own."""


class EpoRunner(OnPolicyRunner):
    """Trains any :class:`~epo_lab.algorithms.base.Algorithm`, and rsl_rl's own behind that contract.

    Iterations are counted over the whole life of a run. Settings beyond rsl_rl's: ``keep_checkpoints`` (newest numbered
    checkpoints to keep, 0 keeps all), ``save_physics`` (whether running episodes are kept beside the newest),
    ``guard_bound`` (largest observation or reward that is taken for one) and ``guard_limit`` (iterations in a row with
    environments beyond it after which the run stops).
    """

    alg: Algorithm
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
        guarded = GuardedEnv(env, train_cfg.get("guard_limit", 20), train_cfg.get("guard_bound", 1e6))
        super().__init__(guarded, train_cfg, log_dir=log_dir, device=device)
        if not isinstance(self.alg, Algorithm):
            self.alg = StockAlgorithm(self.alg, train_cfg["num_steps_per_env"])
        # the log below takes the scalars itself, an iteration earlier than the extras could bring them
        self.alg.scalars_in_extras = False
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
        )
        self.logger.git_status_repos = [__file__]
        self._folder = None if log_dir is None else Path(log_dir)
        self._records: RecordFiles | None = None
        self._checkpoints = Checkpoints(self.alg, self.env, self.logger, train_cfg.get("keep_checkpoints", 0))
        self._stop = StopSignal()
        self.goes_on = False
        """Whether episodes go on where a checkpoint left them."""
        self.because = ""
        """Why they do not, after :meth:`resume`."""

    def learn(
        self,
        num_learning_iterations: int,
        init_at_random_ep_len: bool = False,
        watch: Callable[[int], None] | None = None,
    ) -> signal.Signals | None:
        """Run up to this many more iterations and return the signal that ended them early, if one did.

        Args:
            num_learning_iterations: Iterations.
            init_at_random_ep_len: Whether the first episodes begin at random times.
            watch: Is called with the number of each iteration that has ended. Defaults to None.
        """
        obs = self._begin(init_at_random_ep_len and not self.goes_on)
        first = self.current_learning_iteration
        total = first + num_learning_iterations
        stopped = None
        with self._stop, _names_what_is_lost(), heartbeat():
            for iteration in range(first, total):
                start = time.time()
                obs = self._collect(obs)
                meet(f"end of roll-out {iteration}", hurried=self._is_hurried)
                collected = time.time()
                losses = self._learn_from(obs)
                self.alg.evolve()
                times = {"collect_time": collected - start, "learn_time": time.time() - collected}
                self.current_learning_iteration = iteration
                if iteration == first and self._writes:
                    print(self.memory_line())

                obs = self._mend(obs)
                self._log(iteration, first, total, losses, **times)
                if watch is not None:
                    watch(iteration)
                stopped = self._signal_of_the_group()
                last = stopped is not None or iteration == total - 1
                if last:
                    # before the checkpoint after which the run is complete
                    self.logger.plot()
                if last or iteration % self.cfg["save_interval"] == 0:
                    self._save_if_first()
                if last:
                    break
            self._end()
        return stopped

    # --- the moments of an iteration

    def _begin(self, random_clocks: bool) -> TensorDict:
        """Prepare everything and return the first observations."""
        if random_clocks:
            # the first resets are spread over an episode
            self.env.episode_length_buf = torch.randint_like(
                self.env.episode_length_buf, high=int(self.env.max_episode_length)
            )
        obs = self.env.get_observations().to(self.device)
        self.alg.train_mode()
        if self.is_distributed:
            self.alg.broadcast_parameters()
        self.logger.init_logging_writer()
        if self._writes and self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._records = RecordFiles(self._folder)
        return obs

    def _collect(self, obs: TensorDict) -> TensorDict:
        """Step the environments for one roll-out, and return the observations after it."""
        uses_rnd = bool(self.cfg["algorithm"].get("rnd_cfg"))
        learner: Any = self.alg
        with torch.inference_mode():
            for _ in range(self.cfg["num_steps_per_env"]):
                actions = self.alg.act(obs)
                obs, rewards, dones, extras = self.env.step(actions.to(self.env.device))
                obs, rewards, dones = obs.to(self.device), rewards.to(self.device), dones.to(self.device)
                self.alg.process_env_step(obs, rewards, dones, extras)
                intrinsic = learner.intrinsic_rewards if uses_rnd else None
                self.logger.process_env_step(rewards, dones, extras, intrinsic)
        return obs

    def _learn_from(self, obs: TensorDict) -> dict[str, float]:
        """Compute targets, learn, and return the losses."""
        with torch.inference_mode():
            self.alg.compute_returns(obs)
        return self.alg.learn()

    def _mend(self, obs: TensorDict) -> TensorDict:
        """Reset environments that gave non-finite numbers; what is seen next comes from after their reset."""
        if self.env.end_iteration(self.current_learning_iteration, self._folder):
            return self.env.get_observations().to(self.device)
        return obs

    def _log(self, iteration: int, first: int, total: int, losses: dict[str, float], **times: float) -> None:
        """Log the iteration; what nobody writes is dropped."""
        records = self.alg.records()
        if self._records is not None:
            self._records.append(records)
        self.logger.log_iteration(
            it=iteration,
            start_it=first,
            total_it=total,
            loss_dict=losses,
            learning_rate=self.alg.learning_rate,
            action_std=self.alg.policy().output_std,
            rnd_weight=self.alg.rnd.weight if self.alg.rnd else None,
            scalars={**self.alg.scalars(), "Guard/reset_envs": float(self.env.reset_count)},
            **times,
        )

    def memory_line(self) -> str:
        """Return how much memory each part of the agent holds; optimizers have theirs after the first iteration."""
        held = {part: held_bytes(*owners) for part, owners in self.alg.memory().items()}
        parts = ", ".join(f"{part} {gigabytes(size)}" for part, size in held.items())
        return f"Memory on {self.device}: {parts}; {gigabytes(sum(held.values()))} in all"

    def _save_if_first(self) -> None:
        self.alg.before_save()
        if self.cfg.get("save_physics", False) and self._folder is not None:
            folder = Path(first_process_object(str(self._folder.resolve())))
            self._checkpoints.save_episodes(folder, self.current_learning_iteration)
            meet(f"episodes of iteration {self.current_learning_iteration}", hurried=self._is_hurried)
        if self._writes and self._folder is not None:
            self.save(str(self._folder / f"model_{self.current_learning_iteration}.pt"))

    def _end(self) -> None:
        if self.logger.writer is not None:
            self.logger.stop_logging_writer()

    def _is_hurried(self) -> bool:
        return self._stop.received is not None

    @property
    def _writes(self) -> bool:
        """Whether this process writes files."""
        return self._folder is not None and not self.logger.disable_logs

    # --- checkpoints

    def save(self, path: str, infos: dict | None = None) -> None:
        """Save everything a resumed run needs; the file appears whole or not at all."""
        if self._records is not None:
            # what is logged up to a checkpoint is on the disk before it
            self._records.sync()
            self.logger.sync()
        self._checkpoints.save(Path(path), self.current_learning_iteration, self._score(), infos)
        self.logger.save_model(path, self.current_learning_iteration)
        self.logger.show_population(self.current_learning_iteration)

    def load(
        self, path: str, load_cfg: dict | None = None, strict: bool = True, map_location: str | None = None
    ) -> dict:
        """Load the models for a new run, with a new population of these genes; a resumed run calls :meth:`resume`."""
        content = read_checkpoint(Path(path), map_location or self.device)
        self._checkpoints.load_models(Path(path), content, load_cfg, strict)
        return content["infos"]

    def resume(self, path: str, changed: str = "") -> None:
        """Load a checkpoint of this very run and go on with the iteration after it.

        In its folder, whatever came after the checkpoint is set aside or forgotten. Checkpoints go first: a kill at any
        moment leaves logs that reach at least as far as the newest of them.

        Args:
            path: The checkpoint.
            changed: What was changed about the environments, whose episodes then begin anew. Defaults to nothing.
        """
        content = read_checkpoint(Path(path), self.device)
        self.because = self._checkpoints.resume(Path(path), content, changed)
        self.goes_on = not self.because
        self.current_learning_iteration = content["iter"] + 1
        if self._writes and self._folder is not None:
            if self._folder.resolve() == Path(path).resolve().parent:
                go_back(self._folder, Path(path), content["iter"])
                mend_run(self._folder, self.cfg.get("keep_checkpoints", 0))
            self.logger.drop_after(content["iter"])
            # records count finished iterations, checkpoints count from zero
            RecordFiles(self._folder).drop_after(self.current_learning_iteration)

    def _score(self) -> float:
        """Return how good the master is now; minus infinity if that is not known yet."""
        score = self.alg.score()
        if score is not None:
            return score
        return statistics.mean(self.logger.rewbuffer) if self.logger.rewbuffer else -float("inf")

    # --- several processes

    def _configure_multi_gpu(self) -> None:
        """Join the other processes, over NCCL on GPUs and over gloo on CPUs."""
        self.gpu_world_size = launched_world_size()
        if self.gpu_world_size == 1:
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
        on_gpu = torch.device(self.device).type == "cuda"
        if on_gpu:
            torch.cuda.set_device(self.gpu_local_rank)
        join("nccl" if on_gpu else "gloo", self.gpu_global_rank, self.gpu_world_size)

    def _signal_of_the_group(self) -> signal.Signals | None:
        """Return the signal that any process received, the same in all."""
        received = int(self._stop.received or 0)
        if self.is_distributed:
            received = int(max_over_processes(torch.tensor([received], device=self.device)))
        return signal.Signals(received) if received else None


@contextmanager
def _names_what_is_lost() -> Iterator[None]:
    """Say in one line that the connection to another process broke; torchrun names that one."""
    try:
        yield
    except RuntimeError as error:
        known = isinstance(error, torch.distributed.DistError) or any(w in str(error) for w in BROKEN_CONNECTION)
        if not known:
            raise
        reason = " ".join(str(error).split())[:200]
        raise LostProcessError(f"rank {rank()} lost another process ({reason})") from None
