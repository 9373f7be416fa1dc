"""Find, read and write checkpoints."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epo_lab.base.errors import NonFiniteUpdateError, UserError
from epo_lab.base.files import link_file, remove_scratch, replace_file, untouched_for
from epo_lab.base.processes import all_processes, rank, world_size

from .aside import set_files_aside
from .episodes import Episodes, episodes_name
from .folder import checkpoints, find_runs, iteration_of

if TYPE_CHECKING:
    import torch

    from epo_lab.algorithms.base import Algorithm

    from .guard import GuardedEnv
    from .logger import EpoLogger

FORMAT = 2
"""Layout of a checkpoint; version 0.1 wrote none."""

LATEST = "latest"
BEST = "best"
BEST_NAME = "best.pt"
"""Checkpoint in which the master was best, of those that were written; stock commands look for ``model_*.pt`` only."""

ABANDONED = 3600.0
"""Time after which a file that was not written to the end will not be any more [s]."""


def find_checkpoint(selector: str, *, root: Path, task: str, run_name: str | None = None) -> Path:
    """Return the checkpoint that a user named.

    Args:
        selector: ``latest`` or ``best`` of the newest run, a checkpoint file, or a run folder (its last checkpoint).
        root: Folder of the experiment's runs, for ``latest`` and ``best``.
        task: Task of the run, for ``latest`` and ``best``.
        run_name: Only runs of this name count for ``latest`` and ``best``. Defaults to None (all).
    """
    if selector in (LATEST, BEST):
        runs = find_runs(root, task, run_name)
        if not runs:
            named = f" named {run_name}" if run_name else ""
            raise UserError(f"no run of {task}{named} with a checkpoint in {root}: train first, or name a file")
        best = runs[-1] / BEST_NAME
        return best if selector == BEST and best.is_file() else checkpoints(runs[-1])[-1]
    path = Path(selector).expanduser()
    if path.is_dir():
        found = checkpoints(path)
        if not found:
            raise UserError(f"no checkpoint (model_<iteration>.pt) in {path}: name another run folder or a file")
        return found[-1].resolve()
    if not path.is_file():
        raise UserError(f"no checkpoint at {path}: name a file, a run folder, 'latest' or 'best'")
    return path.resolve()


def newest_whole(folder: Path) -> tuple[Path, str]:
    """Return the newest checkpoint of a run that is not damaged, and a line about those that are."""
    damaged: dict[str, UserError] = {}
    for path in reversed(checkpoints(folder)):
        try:
            read_checkpoint(path)
        except UserError as error:
            damaged[path.name] = error
            continue
        note = f"{', '.join(damaged)} cannot be read: going on from {path.name}, the newest checkpoint that is whole"
        return path, note if damaged else ""
    raise next(iter(damaged.values()))


def read_checkpoint(path: Path, device: str = "cpu") -> dict[str, Any]:
    """Return what a checkpoint holds; a file that is none is the user's to mend. Nothing in the file is run."""
    content = _read(path, device)
    if not isinstance(content, dict) or "iter" not in content:
        raise UserError(f"{path} holds no rsl_rl checkpoint: use a model_<iteration>.pt of a training run")
    return content


def _read(path: Path, device: str, *, mmap: bool = False) -> Any:
    """Return what a file of torch's holds, if it is as it was written."""
    import torch

    try:
        _check_sums(path)
        with torch.serialization.safe_globals(_numpy_parts()):
            return torch.load(path, weights_only=True, map_location=device, mmap=mmap)
    except Exception as error:  # a damaged file can lead to any
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        if "Weights only load failed" in str(error):
            reason = "it holds more than numbers, and loading it could run code"
        raise UserError(f"cannot read checkpoint {path} ({reason}): it is damaged or none; use another one") from None


def _check_sums(path: Path) -> None:
    """Raise if a part of a file is not what was written: torch notes a checksum of each, and does not look at it."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            damaged = file.testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of {damaged} is wrong")


def _numpy_parts() -> list[Any]:
    """Return what an array is made of in a file: version 0.1 kept numpy's random numbers as one."""
    import numpy as np

    rebuild = np.zeros(1).__reduce__()[0]
    return [rebuild, np.ndarray, np.dtype, type(np.dtype(np.uint32))]


def _write(content: dict[str, Any], path: Path) -> None:
    """Write with Python's own file, whose errors say why: torch's says of a full disk that a position is unexpected."""
    import torch

    with path.open("wb") as file:
        torch.save(content, file)


class Checkpoints:
    """The one owner of what a checkpoint holds: the algorithm's models and parts, and the parts of the run."""

    def __init__(self, algorithm: Algorithm, env: GuardedEnv, logger: EpoLogger, keep: int) -> None:
        """Take everything that has a state.

        Args:
            algorithm: The algorithm.
            env: The environment.
            logger: The logger, which counts steps and episodes.
            keep: How many of the newest numbered checkpoints are kept; 0 keeps all.
        """
        self._algorithm, self._env, self._logger, self._keep = algorithm, env, logger, keep
        self._episodes = Episodes(algorithm, env, logger)
        self._best_score = -float("inf")
        self._best_iteration: int | None = None

    def save(self, path: Path, iteration: int, score: float, infos: dict | None = None) -> None:
        """Write a checkpoint, and let ``best.pt`` name it if the master was never better.

        Raises, and writes nothing, if the models are not finite any more.

        Args:
            path: The file.
            iteration: Number of the iteration that has just ended.
            score: How good the master is.
            infos: What a user wants to keep.
        """
        from .state import env_state, rng_state

        models = self._algorithm.save()
        learned = {name: models["parts"].get(name) for name, part in self._algorithm.parts().items() if part.learned}
        check_finite(models | {"parts": learned}, path.parent)
        if score > self._best_score:
            self._best_score, self._best_iteration = score, iteration
        content = models | {
            "format": FORMAT,
            "iter": iteration,
            "infos": infos,
            "num_members": self._algorithm.num_members,
            "run": {
                "rng": rng_state(),
                "env": env_state(self._env),
                "guard": {"reset_count": self._env.reset_count},
                "logger": self._logger.state_dict(),
                "best_score": self._best_score,
                "best_iteration": self._best_iteration,
            },
        }
        # Note: heavy parts are whole on the disk before the checkpoint is, and take their place after it, so that at
        # any moment the newest checkpoint has its own beside it; episodes are there already, those of all processes
        heavy = {name: part.owner for name, part in self._algorithm.parts().items() if part.heavy}
        for name, owner in heavy.items():
            state = {"iter": iteration, "state": owner.state_dict()}
            replace_file(_next_heavy(path.parent, name), lambda scratch, state=state: _write(state, scratch))
        replace_file(path, lambda scratch: _write(content, scratch))
        for name in [*heavy, *map(episodes_name, range(world_size()))]:
            if _next_heavy(path.parent, name).is_file():
                _next_heavy(path.parent, name).replace(_heavy(path.parent, name))
        if self._best_iteration == iteration:
            link_file(path, path.parent / BEST_NAME)
        prune_checkpoints(path.parent, self._keep)

    def save_episodes(self, folder: Path, iteration: int) -> None:
        """Write the episodes of this process's environments beside the checkpoint that the first process writes next.

        Args:
            folder: The run folder, which all processes see.
            iteration: Number of the iteration that has just ended.
        """
        content = {"iter": iteration, "world_size": world_size(), **self._episodes.save()}
        replace_file(_next_heavy(folder, episodes_name(rank())), lambda scratch: _write(content, scratch))

    def load_models(self, path: Path, content: dict[str, Any], load_cfg: dict | None, strict: bool) -> None:
        """Load models, and what was learned besides, for a new run."""
        learned = {name for name, part in self._algorithm.parts().items() if part.learned}
        states = {name: state for name, state in content.get("parts", {}).items() if name in learned}
        self._load(path, content | {"parts": states}, load_cfg, strict)

    def resume(self, path: Path, content: dict[str, Any], changed: str = "") -> str:
        """Load everything, and return why episodes begin anew; nothing if they go on where they were.

        What belongs to single environments (their state, recurrent states, random numbers) is only restored in a run
        of one process, or from the file that each has: the checkpoint holds those of the first. Curricula are restored
        on all.

        Args:
            path: The checkpoint.
            content: What it holds.
            changed: What was changed about the environments since it was written. Defaults to nothing.
        """
        if content.get("format") != FORMAT:
            raise UserError(
                f"{path} was written by another version of epo-lab (format {content.get('format', 1)}, now {FORMAT}):"
                " it can be played, and a new run can begin from it with --checkpoint, but it cannot be resumed"
            )
        from .state import set_env_state, set_rng_state

        several = world_size() > 1
        states = {} if several else self._heavy_states(path.parent, content["iter"])
        self._load(path, content | {"parts": content["parts"] | states}, None, True)
        run = content["run"]
        self._best_score, self._best_iteration = run["best_score"], run.get("best_iteration")
        self._env.reset_count = run["guard"]["reset_count"]
        self._logger.load_state_dict(run["logger"])
        goes_on = set_env_state(self._env, run["env"], of_another=several)
        if not several:
            set_rng_state(run["rng"])
        because = "" if goes_on else self._resume_episodes(path.parent, content["iter"], changed)
        if because:
            self._algorithm.interrupt(forget=several)
            self._logger.interrupt()
        return because

    def _resume_episodes(self, folder: Path, iteration: int, changed: str) -> str:
        """Restore the episodes of this process, if all processes can, and return why not; nothing if they go on."""
        name = episodes_name(rank())
        content = _content_of(folder, name, iteration)
        because = changed or self._episodes.misfit(content, world_size())
        if _heavy(folder, name).is_file() and not (content or changed):
            because = f"{_heavy(folder, name).name} belongs to another checkpoint, or is damaged"
        if not all_processes(not because, self._env.device):
            return because or "another process could not restore its own"
        return self._episodes.restore(content)

    def _heavy_states(self, folder: Path, iteration: int) -> dict[str, Any]:
        """Return the states of heavy parts that were written with the checkpoint of an iteration."""
        states = {}
        for name in [name for name, part in self._algorithm.parts().items() if part.heavy]:
            content = _content_of(folder, name, iteration)
            if content:
                states[name] = content["state"]
        return states

    def _load(self, path: Path, content: dict[str, Any], load_cfg: dict | None, strict: bool) -> None:
        try:
            self._algorithm.load(content, load_cfg, strict)
        except (RuntimeError, KeyError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"checkpoint {path} does not fit this task and agent (its run folder names agent and size; Isaac Lab's"
                f" own commands take them as --agent rsl_rl_NAME_cfg_entry_point and presets=SIZE): {reason}"
            ) from None


def go_back(folder: Path, checkpoint: Path, iteration: int) -> None:
    """Let a checkpoint be the newest of its run: those after it are set aside, before anything else is changed.

    Args:
        folder: The run folder.
        checkpoint: The checkpoint, one of the folder.
        iteration: Its iteration.
    """
    own = folder / f"model_{iteration}.pt"
    if not own.is_file():
        # best.pt can outlive the numbered checkpoint
        link_file(checkpoint, own)
    later = [path for path in checkpoints(folder) if iteration_of(path) > iteration]
    set_files_aside(later, f"came after {checkpoint.name}, from which this run goes on")


def mend_run(folder: Path, keep: int) -> None:
    """Finish what a kill may have cut off while the newest checkpoint was written, and delete what was half-written.

    Args:
        folder: The run folder, claimed by this process.
        keep: How many of the newest numbered checkpoints are kept; 0 keeps all.
    """
    remove_scratch(folder)
    content = read_checkpoint(checkpoints(folder)[-1])
    for path in folder.glob(_next_heavy(folder, "*").name):
        if _read_heavy(path).get("iter") == content["iter"]:
            path.replace(_heavy(folder, path.name.removesuffix(NEXT).removeprefix(".").removesuffix(".pt")))
        else:
            path.unlink()
    run, best = content.get("run", {}), folder / BEST_NAME
    # the first checkpoints of version 0.2 do not name the best one
    if "best_iteration" in run and _iteration_in(best) != run["best_iteration"]:
        source = folder / f"model_{run['best_iteration']}.pt"
        if source.is_file():
            link_file(source, best)
        elif best.is_file():
            set_files_aside([best], "is damaged, or of an iteration that this run does again")
    prune_checkpoints(folder, keep)


def clear_killed(root: Path) -> None:
    """Delete what runs that were killed before their first checkpoint had begun to write; nobody can resume them.

    Args:
        root: Folder of an experiment's runs. Other processes may be training in them.
    """
    for folder in root.iterdir() if root.is_dir() else ():
        if folder.is_dir() and not checkpoints(folder):
            remove_scratch(folder, older_than=ABANDONED)
            for path in folder.glob(_next_heavy(folder, "*").name):
                if untouched_for(path) > ABANDONED:
                    path.unlink(missing_ok=True)


def _iteration_in(path: Path) -> int | None:
    """Return the iteration of a checkpoint by what it holds; None if it holds nothing."""
    try:
        return int(read_checkpoint(path)["iter"])
    except UserError:
        return None


def check_finite(content: Any, folder: Path) -> None:
    """Raise if a tensor is not finite: such models learn nothing any more, and must not replace those that do.

    Args:
        content: Nested states of the models.
        folder: The run folder, whose checkpoints stay.
    """
    for name, tensor in _tensors(content):
        if not bool(tensor.isfinite().all()):
            newest = checkpoints(folder)[-1:]
            again = f"; {newest[0]} is the last that is: --resume goes on from it" if newest else ""
            raise NonFiniteUpdateError(f"{name} is not finite any more, so this checkpoint is not written{again}")


def _tensors(content: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all tensors of nested states with the path to each."""
    import torch

    if isinstance(content, torch.Tensor):
        yield path, content
    elif isinstance(content, dict):
        for name, value in content.items():
            yield from _tensors(value, f"{path}.{name}" if path else str(name))
    elif isinstance(content, list | tuple):
        for number, value in enumerate(content):
            yield from _tensors(value, f"{path}[{number}]")


def _heavy(folder: Path, name: str) -> Path:
    """Return the file of a heavy part; it belongs to the newest checkpoint."""
    return folder / f"{name}.pt"


NEXT = ".next"


def _next_heavy(folder: Path, name: str) -> Path:
    """Return where a heavy part waits until its checkpoint is written."""
    return folder / f".{name}.pt{NEXT}"


def _read_heavy(path: Path) -> dict[str, Any]:
    """Return what the file of a heavy part holds; nothing if there is none, or it is damaged."""
    if not path.is_file():
        return {}
    try:
        return _read(path, "cpu", mmap=True)
    except UserError as error:
        print(f"{error}; the run goes on without it")
        return {}


def _content_of(folder: Path, name: str, iteration: int) -> dict[str, Any]:
    """Return what was written of a heavy part with the checkpoint of an iteration; nothing if there is none."""
    for file in (_heavy(folder, name), _next_heavy(folder, name)):
        content = _read_heavy(file)
        if content.get("iter") == iteration:
            return content
    return {}


def prune_checkpoints(folder: Path, keep: int) -> None:
    """Delete all but the ``keep`` newest numbered checkpoints; 0 keeps all."""
    if keep > 0:
        for path in checkpoints(folder)[:-keep]:
            path.unlink(missing_ok=True)
