"""Kill training runs at exact places of their work on files, resume them, and compare every file with a whole run's.

    .venv/bin/python tests/faults/kill.py --agent epo --kills 20

A run is killed with SIGKILL right before the n-th time that it opens a file for writing, renames, links or removes one.
Half of the runs are killed a second time while they are being resumed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.equality import assert_same

TASK = "Epo-Diag-Deceptive-v0"
ITERATIONS = 9
CHANGES = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate")
WRITES = os.O_WRONLY | os.O_RDWR
COMMON = [
    "--task",
    TASK,
    "--num_envs",
    "64",
    "--max_iterations",
    str(ITERATIONS),
    "--auto_resume",
    "--run_name",
    "run",
    "agent.save_interval=2",
    "agent.keep_checkpoints=2",
]
SETTINGS = {
    "epo": ["agent.algorithm.census_interval=2"],
    "sac": [
        "agent.algorithm.warmup_steps=256",
        "agent.algorithm.batch_size=32",
        "agent.algorithm.updates_per_step=0.2",
    ],
}
VOLATILE = ("Perf/total_fps", "Perf/collection_time", "Perf/learning_time")
"""Columns that hold times."""
NOT_COMPARED = ("command.txt", "setup.log", "curves.png", ".lock")
"""Files whose content is of the start, of the clock, or of a process; they must be there all the same."""


def train(folder: Path, agent: str, kill_at: int | None = None) -> tuple[int, int]:
    """Train in a process of its own; return its exit code, -9 if it was killed, and how many changes it made.

    Args:
        folder: Working folder of the command.
        agent: Name of the agent.
        kill_at: Number of the change before which it is killed. Defaults to None: not at all.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _train_here(folder, [*COMMON, "--agent", agent, *SETTINGS.get(agent, [])], kill_at, write)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        changes = pipe.read()
    return os.waitstatus_to_exitcode(status), int(changes or 0)


def _train_here(folder: Path, words: list[str], kill_at: int | None, pipe: int) -> None:
    """Train and end this process."""
    code = 1
    try:
        os.chdir(folder)
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        made = 0

        def count(event: str, values: tuple[Any, ...]) -> None:
            nonlocal made
            if event in CHANGES or (event == "open" and isinstance(values[2], int) and values[2] & WRITES):
                path = values[0]
                if isinstance(path, str | os.PathLike) and "rsl_rl" in Path(path).absolute().parts:
                    made += 1
                    if made == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        sys.argv[0] = "train"
        from epo_lab.cli.train import main

        code = main(words)
        os.write(pipe, str(made).encode())
    except SystemExit as ending:
        code = int(ending.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def the_run(folder: Path) -> Path:
    """Return the run of a working folder that is complete; one that was killed at once is begun anew."""
    (last,) = folder.glob(f"logs/rsl_rl/*/*/model_{ITERATIONS - 1}.pt")
    return last.parent


def compare(whole: Path, other: Path) -> None:
    """Raise an AssertionError that names the first difference between two run folders."""
    assert _names(whole) == _names(other), sorted(_names(whole) ^ _names(other))
    for name in sorted(_names(whole)):
        first, second = whole / name, other / name
        if first.name in NOT_COMPARED or first.name.startswith("events."):
            continue
        assert_same(_content(first), _content(second), name)


def _names(folder: Path) -> set[str]:
    """Return the files of a run; those of TensorBoard are as many as the run has starts."""
    paths = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {path for path in paths if not path.startswith("events.")}


def _content(path: Path) -> Any:
    """Return what a file says about the run, without times."""
    import torch

    if path.suffix == ".pt":
        content = torch.load(path, weights_only=True)
        content.get("run", {}).get("logger", {}).pop("seconds", None)
        return content
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{tag: cell for tag, cell in row.items() if tag not in VOLATILE} for row in csv.DictReader(file)]
    if path.name == "run.json":
        return json.loads(path.read_text()) | {"created_at": ""}
    return path.read_text()


def check(folder: Path, agent: str, kills: int, seed: int = 0) -> list[str]:
    """Kill, resume and compare; return a line for every difference.

    Args:
        folder: An empty folder.
        agent: Name of the agent.
        kills: Number of kills.
        seed: Seed of the places.
    """
    import epo_lab.commands.train
    import epo_lab.runner.runner  # noqa: F401 - so that the processes need not import it

    draw, problems = random.Random(seed), []
    (folder / "whole").mkdir()
    code, changes = train(folder / "whole", agent)
    assert code == 0, (folder / "whole/output.txt").read_text()
    done = 0
    while done < kills:
        places = [draw.randrange(1, changes + 1) for _ in range(min(draw.randint(1, 2), kills - done))]
        work = folder / f"killed-{done}"
        work.mkdir()
        # a second kill may find less to do than the first, and then comes too late to count
        codes = [train(work, agent, place)[0] for place in places]
        code, _ = train(work, agent)
        done += codes.count(-signal.SIGKILL)
        print(f"{agent}: killed at {places} of {changes}: {codes}, resumed: {code}", flush=True)
        try:
            assert codes[0] == -signal.SIGKILL and code == 0, (work / "output.txt").read_text()[-2000:]
            compare(the_run(folder / "whole"), the_run(work))
        except AssertionError as error:
            problems.append(f"{agent}, killed at {places}: {error}")
    return problems


def main() -> int:
    """Kill, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="epo")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = check(Path(folder), args.agent, args.kills, args.seed)
    print(f"{args.kills} kills, {len(problems)} differences", *problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
