"""Two processes under torchrun, one of which is killed or told to stop."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from support.command import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TASK, ITERATIONS, LONGEST = "Epo-Diag-Deceptive-v0", 60, 60.0


class Run:
    """A run of two processes."""

    def __init__(self, folder, *torchrun):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--rdzv_backend", "c10d"]
        command += ["--rdzv_endpoint", "127.0.0.1:0", *torchrun, str(ROOT / "scripts/train.py"), "--task", TASK]
        command += ["--num_envs", "16", "--max_iterations", str(ITERATIONS), "--run_name", "job", "--auto_resume"]
        command += ["agent.algorithm.num_agents=4", "agent.save_interval=5"]
        self.folder = folder
        self.output = folder / "output.txt"
        with self.output.open("w") as file:
            self.process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT)

    def checkpoints(self):
        return sorted(self.folder.glob("logs/rsl_rl/*/*/model_*.pt"), key=lambda path: int(path.stem[6:]))

    def wait_for_checkpoints(self, count, seconds=200.0):
        end = time.monotonic() + seconds
        while len(self.checkpoints()) < count:
            assert self.process.poll() is None and time.monotonic() < end, self.output.read_text()[-3000:]
            time.sleep(0.2)

    def worker(self, rank):
        """Return the process of a rank: a child of torchrun's."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                return int(child)
        raise AssertionError(f"no rank {rank} among {children}")

    def wait(self, seconds):
        self.process.wait(seconds)
        return self.process.returncode, self.output.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_a_killed_worker_is_started_again_and_the_run_is_finished(tmp_path):
    with Run(tmp_path, "--max-restarts", "1") as run:
        run.wait_for_checkpoints(2)
        survivor = run.worker(0)
        os.kill(run.worker(1), signal.SIGKILL)
        killed = time.monotonic()
        while Path(f"/proc/{survivor}").exists():
            assert time.monotonic() - killed < LONGEST, "the other process still waits"
            time.sleep(0.2)
        code, said = run.wait(400)
    assert code == 0, said[-3000:]
    folder = run.checkpoints()[-1].parent
    rows = (folder / "curves.csv").read_text().splitlines()
    assert len(rows) == 1 + ITERATIONS and run.checkpoints()[-1].name == f"model_{ITERATIONS - 1}.pt"
    assert said.count("Run folder:") == 2 and len(list(folder.parent.iterdir())) == 1, "the same run goes on"


def test_without_a_restart_the_other_ends_with_one_line_that_names_its_rank(tmp_path):
    with Run(tmp_path) as run:
        run.wait_for_checkpoints(1)
        os.kill(run.worker(1), signal.SIGKILL)
        code, said = run.wait(LONGEST)
    assert code == 1
    lost = [line for line in said.splitlines() if line.startswith("train: rank 0")]
    assert len(lost) == 1 and "--resume goes on" in lost[0], said[-3000:]


@pytest.mark.parametrize("everybody", [False, True])
def test_a_signal_ends_the_group_with_its_code_and_one_whole_checkpoint(tmp_path, everybody):
    with Run(tmp_path) as run:
        run.wait_for_checkpoints(1)
        for rank in (0, 1) if everybody else (1,):
            os.kill(run.worker(rank), signal.SIGTERM)
        code, said = run.wait(LONGEST)
    assert code == 1, "torchrun's own"
    assert "exitcode  : 143" in said, said[-3000:]
    assert said.count("Stopped by SIGTERM") == 1 and "Done." not in said
    last = run.checkpoints()[-1]
    done = torch.load(last, weights_only=False)["iter"] + 1
    assert len((last.parent / "curves.csv").read_text().splitlines()) == 1 + done < 1 + ITERATIONS
