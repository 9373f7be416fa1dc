"""Two processes under torchrun, one of which is killed, told to stop, or hangs; and torchrun itself killed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from support.command import ROOT, children, wait_for_end

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
        for child in children(self.process.pid):
            if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                return child
        raise AssertionError(f"no rank {rank}")

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
        wait_for_end([survivor], LONGEST)
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


def test_a_killed_torchrun_leaves_no_worker_behind(tmp_path):
    with Run(tmp_path) as run:
        run.wait_for_checkpoints(1)
        workers = [run.worker(rank) for rank in (0, 1)]
        run.process.kill()
        wait_for_end(workers, LONGEST)
    assert torch.load(run.checkpoints()[-1], weights_only=True)["iter"] < ITERATIONS - 1


def test_who_hangs_is_named_after_30_s_and_given_up_after_the_time_out(tmp_path, monkeypatch):
    monkeypatch.setenv("EPO_TIMEOUT", "40")
    with Run(tmp_path) as run:
        run.wait_for_checkpoints(1)
        hangs = run.worker(1)
        os.kill(hangs, signal.SIGSTOP)
        # torchrun waits 30 s for a worker that does not hear its SIGTERM
        code, said = run.wait(150)
        wait_for_end([hangs])
    assert code == 1
    assert "[epo-lab] rank 0 has had no sign of life from rank 1 for 30 s" in said, said[-3000:]
    assert re.search(r"train: rank 0 (waited \d+ s for rank 1|lost another process)", said), said[-3000:]
