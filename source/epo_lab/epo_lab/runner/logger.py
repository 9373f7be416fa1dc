"""rsl_rl's logger, with a line of progress instead of a page an iteration, and a table of all scalars."""

from __future__ import annotations

import contextlib
import io
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rsl_rl.utils.logger import Logger

from epo_lab.base.files import sync
from epo_lab.base.tables import markdown
from epo_lab.report.gene_picture import LINEAGE_HEADER, gene_picture, lineage_rows
from epo_lab.report.record import read_population

from .code_state import store_code_state
from .console import Console, count, duration
from .curves import CurveTable, plot_curves
from .folder import CURVES

STEPS = "Perf/total_steps"
PLOTTED = ["Train/mean_reward", "Train/mean_episode_length", "Policy/mean_std", "Loss/learning_rate"]
POPULATION = {
    "best": "Population/fitness_max",
    "median": "Population/fitness_median",
    "KL to master": "Population/kl_to_master",
    "generations": "Generation/events",
}
"""What the line of progress and the picture show of a population, by its name in the line."""


class EpoLogger(Logger):
    """Writes what rsl_rl writes, to TensorBoard or W&B, and also ``curves.csv`` and one line in the terminal."""

    def __init__(
        self,
        *args: Any,
        metric: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Create the logger.

        Args:
            metric: Tag of the task's metric, shown in the terminal. Defaults to None.
            args: Arguments of rsl_rl's logger.
            kwargs: Arguments of rsl_rl's logger.
        """
        super().__init__(*args, **kwargs)
        self.metric = metric
        self.curves: CurveTable | None = None
        self._console = Console()
        self._latest: dict[str, float] = {}
        """Newest values of what the line of progress shows, by tag."""
        self._earlier_time = 0.0
        self._population_shown = (0, 0)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to count on."""
        return {
            "steps": self.tot_timesteps,
            "seconds": self.tot_time,
            "rewards": list(self.rewbuffer),
            "lengths": list(self.lenbuffer),
            "reward_sums": self.cur_reward_sum,
            "episode_lengths": self.cur_episode_length,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Count on from a checkpoint."""
        self.tot_timesteps, self.tot_time = int(state["steps"]), state["seconds"]
        self._earlier_time = self.tot_time
        self.rewbuffer.extend(state["rewards"])
        self.lenbuffer.extend(state["lengths"])
        if len(state["reward_sums"]) == len(self.cur_reward_sum):
            self.cur_reward_sum.copy_(state["reward_sums"])
            self.cur_episode_length.copy_(state["episode_lengths"])

    def running(self) -> dict[str, Any]:
        """Return the sums of the running episodes, those of this process."""
        return {"reward_sums": self.cur_reward_sum.clone(), "episode_lengths": self.cur_episode_length.clone()}

    def go_on(self, running: dict[str, Any]) -> None:
        """Restore what :meth:`running` returned."""
        self.cur_reward_sum.copy_(running["reward_sums"])
        self.cur_episode_length.copy_(running["episode_lengths"])

    def interrupt(self) -> None:
        """Forget the running episodes."""
        self.cur_reward_sum.zero_()
        self.cur_episode_length.zero_()

    def drop_after(self, iteration: int) -> None:
        """Forget rows of the table that a resumed run does again."""
        if self.log_dir is not None:
            CurveTable(Path(self.log_dir) / CURVES).drop_after(iteration)

    def sync(self) -> None:
        """Wait until the table is on the disk."""
        if self.log_dir is not None and (Path(self.log_dir) / CURVES).is_file():
            sync(Path(self.log_dir) / CURVES)

    def init_logging_writer(self) -> None:
        """Open the writer and the table."""
        with contextlib.redirect_stdout(io.StringIO()), _wandb_folder(self.log_dir):
            super().init_logging_writer()
        if self.writer is not None and self.log_dir is not None:
            self.curves = CurveTable(Path(self.log_dir) / CURVES)
            self._tap(self.writer, self.curves)

    def _store_code_state(self) -> list[str]:
        """Note which code is at work; see :mod:`epo_lab.runner.code_state`."""
        if self.log_dir is None or self.disable_logs:
            return []
        return store_code_state(self.git_status_repos, Path(self.log_dir))

    def log_iteration(
        self, it: int, start_it: int, total_it: int, scalars: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        """Log one iteration.

        Args:
            it: Number of the iteration.
            start_it: Number of the first one of this start of the run.
            total_it: Iterations that make up the whole run.
            scalars: More scalars, by tag.
            kwargs: What rsl_rl's logger takes.
        """
        if self.writer is None or self.curves is None:
            return
        collection_size = self.cfg["num_steps_per_env"] * self.num_envs * self.gpu_world_size
        self.writer.add_scalar(STEPS, self.tot_timesteps + collection_size, it)
        for tag, value in (scalars or {}).items():
            self.writer.add_scalar(tag, value, it)
        with contextlib.redirect_stdout(io.StringIO()):
            super().log(it=it, start_it=start_it, total_it=total_it, **kwargs)
        self.curves.write_row()
        self._show(it, start_it, total_it, collection_size / (kwargs["collect_time"] + kwargs["learn_time"]))

    def show_population(self, iteration: int) -> None:
        """Log the lineage as a table, and the map of the genes as a picture, if there is something new."""
        if self.writer is None or self.log_dir is None:
            return
        run = read_population(Path(self.log_dir))
        known, self._population_shown = self._population_shown, (len(run.lineage), len(run.census))
        if known == self._population_shown:
            return
        rows, picture = lineage_rows(run), gene_picture(run) if run.census else None
        writer: Any = self.writer
        if rows:
            cells = [[str(cell) for cell in row] for row in rows]
            writer.add_text("Population/lineage", markdown(LINEAGE_HEADER, cells), iteration)
        if picture is not None:
            writer.add_image("Population/gene_map", picture, iteration, dataformats="HWC")
        if hasattr(writer, "add_table") and rows:
            writer.add_table("Population/lineage", LINEAGE_HEADER, rows, iteration)
        if hasattr(writer, "add_picture") and picture is not None:
            writer.add_picture("Population/gene_map", picture, iteration)

    def plot(self) -> None:
        """Draw ``curves.png``."""
        if self.log_dir is not None and self.curves is not None:
            folder = Path(self.log_dir)
            tags = [*([self.metric] if self.metric else []), *PLOTTED, *POPULATION.values()]
            plot_curves({"run": folder / CURVES}, folder / "curves.png", tags, x_tag=STEPS)

    def _tap(self, writer: Any, curves: CurveTable) -> None:
        """Let every scalar that goes to the writer go to the table too, whoever logs it."""
        write = writer.add_scalar

        def add_scalar(tag: str, scalar_value: Any, global_step: int, *args: Any, **kwargs: Any) -> None:
            write(tag, scalar_value, global_step, *args, **kwargs)
            # rsl_rl logs two tags a second time over seconds instead of iterations
            if not tag.endswith("/time"):
                curves.add(tag, float(scalar_value), global_step)
            if tag == self.metric or tag in POPULATION.values():
                self._latest[tag] = float(scalar_value)

        writer.add_scalar = add_scalar

    def _show(self, it: int, start_it: int, total_it: int, steps_per_second: float) -> None:
        done = it + 1
        fields = {"steps/s": count(steps_per_second)}
        if self.rewbuffer:
            fields["reward"] = f"{statistics.mean(self.rewbuffer):.2f}"
        if self.metric in self._latest:
            fields[self.metric.rpartition("/")[2]] = f"{self._latest[self.metric]:.2f}"
        fields |= {name: f"{self._latest[tag]:.3g}" for name, tag in POPULATION.items() if tag in self._latest}
        fields["time"] = duration(self.tot_time)
        fields["ETA"] = duration((self.tot_time - self._earlier_time) / (done - start_it) * (total_it - done))
        self._console.update(done, total_it, fields, final=done == total_it)


@contextlib.contextmanager
def _wandb_folder(folder: str | None) -> Iterator[None]:
    """Let W&B put its own files into the run folder, unless ``WANDB_DIR`` names another."""
    if folder is None or "WANDB_DIR" in os.environ:
        yield
        return
    os.environ["WANDB_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["WANDB_DIR"]
