"""rsl_rl's on-policy runner, with clean stops, atomic checkpoints and a table of curves."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner

from epo_lab.errors import UserError
from epo_lab.runs.checkpoint import read_checkpoint, write_checkpoint

from .logger import EpoLogger
from .signals import StopSignal, StopTraining


class EpoRunner(OnPolicyRunner):
    """Trains what rsl_rl's runner trains; iterations are counted over the whole life of a run."""

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
        super().__init__(env, train_cfg, log_dir=log_dir, device=device)
        self._stop = StopSignal()
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
            after_iteration=self._stop_if_asked,
        )
        self.logger.git_status_repos = [__file__]

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> signal.Signals | None:
        """Run up to this many more iterations and return the signal that ended them early, if one did."""
        with self._stop:
            try:
                super().learn(num_learning_iterations, init_at_random_ep_len)
            except StopTraining:
                self._save_and_close()
        self.logger.plot()
        return self._stop.received

    def save(self, path: str, infos: dict | None = None) -> None:
        """Save models and training state; the file appears whole or not at all."""
        content = self.alg.save() | {
            "iter": self.current_learning_iteration,
            "infos": infos,
            "logger": self.logger.state(),
        }
        write_checkpoint(Path(path), content)
        self.logger.save_model(path, self.current_learning_iteration)

    def load(
        self, path: str, load_cfg: dict | None = None, strict: bool = True, map_location: str | None = None
    ) -> dict:
        """Load models and training state; a run that is resumed calls :meth:`resume` instead."""
        content = read_checkpoint(Path(path), map_location or self.device)
        self._load_algorithm(path, content, load_cfg, strict)
        return content["infos"]

    def resume(self, path: str) -> None:
        """Load a checkpoint of this very run and go on with the iteration after it."""
        content = read_checkpoint(Path(path), self.device)
        self._load_algorithm(path, content, None, True)
        self.current_learning_iteration = content["iter"] + 1
        if "logger" in content:
            self.logger.load_state(content["logger"], content["iter"])

    def _load_algorithm(self, path: str, content: dict[str, Any], load_cfg: dict | None, strict: bool) -> None:
        try:
            self.alg.load(content, load_cfg, strict)
        except (RuntimeError, KeyError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"checkpoint {path} does not fit this task and agent: {reason}") from None

    def _stop_if_asked(self) -> None:
        if self._stop.received is not None:
            raise StopTraining

    def _save_and_close(self) -> None:
        if self.logger.writer is not None and self.logger.log_dir is not None:
            self.save(str(Path(self.logger.log_dir) / f"model_{self.current_learning_iteration}.pt"))
            self.logger.stop_logging_writer()
