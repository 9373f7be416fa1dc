"""Diagnostics from the command line, without Isaac Lab: train, kill, resume, play, export, compare, torchrun."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from epo_lab.runner.curves import ITERATION, read_curves
from epo_lab.runner.folder import checkpoints
from support.command import ROOT, assert_bad_input, children, script, wait_for_end
from support.equality import assert_same

pytestmark = pytest.mark.integration

TASK = "Epo-Diag-Deceptive-v0"
SMALL = ["--num_envs", "64", "agent.save_interval=2"]


def train(folder, *options):
    return script("train", "--task", TASK, *SMALL, *options, cwd=folder)


def the_run(folder, name):
    return next((folder / "logs/rsl_rl/diag_deceptive").glob(f"*_{name}"))


def test_isaac_lab_is_not_loaded(tmp_path):
    code = (
        "import sys; from epo_lab.commands.tasks import find_task;"
        "from epo_lab.commands.backends.base import make_backend;"
        f"make_backend(find_task('{TASK}')); import epo_lab.runner.runner;"
        "print([name for name in sys.modules if name.startswith(('isaaclab', 'warp', 'pxr'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert result.stdout.strip() == "[]"


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    # generations early enough that a short run has some
    early = ["agent.algorithm.evolution.warmup_steps=48", "agent.algorithm.evolution.patience=false"]
    whole = train(tmp_path, "--run_name", "whole", "--max_iterations", "24", *early)
    assert whole.returncode == 0, whole.stderr
    # nobody named an agent: the one that was taken is
    assert f"{TASK}, agent epo, " in whole.stdout and "agent default" not in whole.stdout + whole.stderr
    command = [sys.executable, str(ROOT / "scripts/train.py"), "--task", TASK, *SMALL]
    command += ["--run_name", "killed", "--max_iterations", "24", *early]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(lambda: len(list(tmp_path.glob("logs/rsl_rl/diag_deceptive/*_killed/model_*.pt"))) > 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed = the_run(tmp_path, "killed")
    at = checkpoints(killed)[-1].stem
    assert at != "model_23", "killed too late to show anything"
    resumed = train(tmp_path, "--run_name", "killed", "--max_iterations", "24", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    contents = [torch.load(run / "model_23.pt", weights_only=False) for run in (the_run(tmp_path, "whole"), killed)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    lineages = [(run / "lineage.jsonl").read_text() for run in (the_run(tmp_path, "whole"), killed)]
    assert lineages[0] == lineages[1] != ""
    again = train(tmp_path, "--run_name", "killed", "--max_iterations", "24", "--resume")
    assert again.returncode == 0
    assert "is complete" in again.stdout


def _wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_sigterm_saves_and_exits_with_143(tmp_path):
    command = [sys.executable, str(ROOT / "scripts/train.py"), "--task", TASK, *SMALL, "--max_iterations", "100000"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    _wait_for(lambda: list(tmp_path.glob("logs/rsl_rl/diag_deceptive/*/model_2.pt")))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    (run,) = tmp_path.glob("logs/rsl_rl/diag_deceptive/*")
    go_on = f"{ROOT}/isaaclab.sh -p {ROOT}/scripts/train.py --task {TASK} --resume --checkpoint {run}"
    assert go_on in output, "the whole command, as it is typed in this folder"


def test_play_prints_the_score_and_export_writes_whoever_is_named(tmp_path):
    assert train(tmp_path, "--max_iterations", "2").returncode == 0
    played = script("play", "--task", TASK, "--num_envs", "64", "--members", "0,3", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "Metrics/score" in played.stdout
    exported = script("export", "--task", TASK, "--members", "0,3", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert "Exported: policy.pt, policy.onnx, policy_3.pt, policy_3.onnx" in exported.stdout
    policy = torch.jit.load(next(tmp_path.glob("logs/rsl_rl/*/*/exported/policy.pt")))
    assert policy(torch.zeros(5, 3)).shape == (5, 2)
    follower = torch.jit.load(next(tmp_path.glob("logs/rsl_rl/*/*/exported/policy_3.pt")))
    assert not torch.equal(policy(torch.zeros(5, 3)), follower(torch.zeros(5, 3))), "whoever is named is exported"
    assert next(tmp_path.glob("logs/rsl_rl/*/*/exported/policy.onnx")).stat().st_size > 0


def test_two_processes_train_one_population(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29671"]
        + [str(ROOT / "scripts/train.py"), "--task", TASK, *SMALL, "--max_iterations", "12"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Run folder:") == 1
    assert "2 processes" in result.stdout
    run = next((tmp_path / "logs/rsl_rl/diag_deceptive").iterdir())
    last = (run / "curves.csv").read_text().splitlines()
    steps = dict(zip(last[0].split(","), last[-1].split(","), strict=True))["Perf/total_steps"]
    assert int(steps) == 2 * 64 * 16 * 12


@pytest.mark.slow
def test_a_comparison_can_be_broken_off_and_goes_on(tmp_path):
    options = ["--tasks", TASK, "--agents", "ppo,epo", "--num_envs", "64", "--max_iterations", "8", "--jobs", "1"]
    first = script("compare", *options, "--seeds", "1", "--output", "out", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert (tmp_path / "out/scores.png").exists()
    runs = len(list(tmp_path.glob("logs/rsl_rl/compare/*/*/run.json")))
    second = script("compare", *options, "--seeds", "2", "--output", "out", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert len(list(tmp_path.glob("logs/rsl_rl/compare/*/*/run.json"))) == runs + 2
    finals = [line for line in (tmp_path / "out/scores.csv").read_text().splitlines() if ",final," in line]
    assert len(finals) == 4


@pytest.mark.slow
def test_a_killed_comparison_leaves_no_worker_behind(tmp_path):
    command = [
        sys.executable,
        str(ROOT / "scripts/compare.py"),
        "--tasks",
        TASK,
        "--agents",
        "ppo,sapg",
        "--seeds",
        "1",
    ]
    command += ["--jobs", "2", "--num_envs", "96", "--max_iterations", "100000", "agent.save_interval=2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(lambda: len(list(tmp_path.glob("logs/rsl_rl/compare/*/*/model_2.pt"))) == 2)
    workers = children(process.pid)
    process.kill()
    process.wait()
    wait_for_end(workers)
    for run in tmp_path.glob("logs/rsl_rl/compare/*/*/run.json"):
        last = checkpoints(run.parent)[-1]
        assert len((run.parent / "curves.csv").read_text().splitlines()) == int(last.stem[6:]) + 2, "saved at its end"
        assert not (run.parent / ".lock").exists()


SWEEP = [
    "--tasks",
    TASK,
    "--agents",
    "epo",
    "--seeds",
    "1",
    "--num_envs",
    "64",
    "agent.algorithm.evolution.mutation_sigma=0.0,0.2",
]


@pytest.mark.slow
def test_a_sweep_is_trained_in_parts_and_collected(tmp_path):
    options = [*SWEEP, "--max_iterations", "4", "--jobs", "1", "--output", "out"]
    part = script("compare", *options, "--part", "2/2", cwd=tmp_path)
    assert part.returncode == 0, part.stderr
    assert [run.parent.name[20:] for run in tmp_path.glob("logs/rsl_rl/compare/*/*/run.json")] == [
        "epo-mutation_sigma=0.2-0"
    ]
    whole = script("compare", *options, cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert len(list(tmp_path.glob("logs/rsl_rl/compare/*/*/run.json"))) == 2, "the first part is not trained again"
    finals = [line.split(",") for line in (tmp_path / "out/scores.csv").read_text().splitlines() if ",final," in line]
    assert [final[1] for final in finals] == ["epo mutation_sigma=0.0", "epo mutation_sigma=0.2"]
    params = tmp_path.glob("logs/rsl_rl/compare/*/*sigma=0.2-0/params/agent.yaml")
    assert "mutation_sigma: 0.2" in next(params).read_text()


@pytest.mark.slow
def test_a_comparison_that_is_stopped_saves_its_runs(tmp_path):
    command = [sys.executable, str(ROOT / "scripts/compare.py"), *SWEEP, "--max_iterations", "100000", "--jobs", "2"]
    process = subprocess.Popen([*command, "agent.save_interval=2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        _wait_for(lambda: len(list(tmp_path.glob("logs/rsl_rl/compare/*/*/model_2.pt"))) == 2, seconds=300)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=200)
    assert process.returncode == 143, errors
    for run in tmp_path.glob("logs/rsl_rl/compare/*/*/run.json"):
        _, rows = read_curves(run.parent / "curves.csv")
        assert checkpoints(run.parent)[-1].name == f"model_{rows[-1][ITERATION]}.pt", "the last iteration is saved"


@pytest.mark.slow
def test_auto_resume_begins_and_then_goes_on(tmp_path):
    assert_bad_input(train(tmp_path, "--auto_resume"), "--auto_resume needs --run_name")
    for iterations in ("2", "3"):
        result = train(tmp_path, "--auto_resume", "--run_name", "job", "--max_iterations", iterations)
        assert result.returncode == 0, result.stderr
    assert [path.name for path in checkpoints(the_run(tmp_path, "job"))] == ["model_0.pt", "model_1.pt", "model_2.pt"]
    # a checkpoint to begin from is not what a job that is queued again goes on with
    first = str(the_run(tmp_path, "job"))
    for iterations in ("1", "2"):
        options = ["--auto_resume", "--run_name", "tuned", "--checkpoint", first, "--max_iterations", iterations]
        assert train(tmp_path, *options).returncode == 0
    assert len(checkpoints(the_run(tmp_path, "tuned"))) == 2 and len(checkpoints(the_run(tmp_path, "job"))) == 3
    other = ["--task", "Epo-Diag-Cycle-v0", "--resume", "--checkpoint", first, "--max_iterations", "9"]
    assert_bad_input(script("train", *other, cwd=tmp_path), "is a run of Epo-Diag-Deceptive-v0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--num_envs", "30"], "16 agents cannot share 30 environments evenly: use 16 or 32 environments"),
        (["agent.algorithm.num_agents=7", "--num_envs", "64"], "7 agents cannot share 64"),
        (["--agent", "epoo"], "has no agent 'epoo'"),
        (["agent.algorithm.evolution.crossover=mix"], "evolution.crossover must be one of"),
        (["agent.algorithm.mutation_sgma=1"], "Did you mean agent.algorithm.evolution.mutation_sigma?"),
        (
            ["agent.algorithm.fitness.source=nonsense"],
            "must be 'return', 'success_or_return', 'extras:<key>'",
        ),
        (["--task", "Epo-Diag-Deceptiv-v0"], "Did you mean Epo-Diag-Deceptive-v0"),
        (["--viz", "viser"], "nothing to look at"),
        (["physics=ovphysx"], "has no physics"),
        (["--seed", "-1"], "no whole number of at least 0"),
        (["--profile", "cpuu"], "unknown profile 'cpuu'"),
        (["--run_name", "a/b"], "leave out the slash"),
        (["agent.algorithm.learning_rate=fast"], "agent.algorithm.learning_rate takes a number"),
        (["agent.algorithm.learning_rate=-1"], "agent.algorithm.learning_rate must be positive"),
        (["agent.save_interval=0"], "agent.save_interval must be at least 1"),
        (["agent.algorithm.num_agents=eight"], "takes a number"),
        (["agent.algorithm.fitness.source=["], "cannot read"),
        (["agent.algorithm.num_mini_batches=20000"], "must be between 1 and 7680 for 480 environments"),
        (["agent.algorithm.fitness.source=extras:nope"], "the environment's extras have only"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(refuse, tmp_path, options, message):
    refuse("train", "--task", TASK, *options, says=message)
    assert list(tmp_path.iterdir()) == []
