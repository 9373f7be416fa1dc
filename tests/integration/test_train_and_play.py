"""Our train and play commands from the outside: what they write, print and refuse."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from epo_lab.runner.curves import read_curves
from epo_lab.runner.folder import checkpoints
from support.command import ROOT, assert_bad_input, script

pytestmark = pytest.mark.integration

TASK = "Epo-Anymal-Flat-v0"
SMALL = ["--task", TASK, "--num_envs", "8", "agent.num_steps_per_env=4", "agent.save_interval=2"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with one short run."""
    folder = tmp_path_factory.mktemp("user")
    result = script("train", *SMALL, "--max_iterations", "3", "--run_name", "first", "--seed", "3", cwd=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    (run,) = folder.glob("logs/rsl_rl/anymal_flat/*")
    return folder, run, result


def test_the_terminal_says_what_runs_and_how_far_it_is(trained):
    _, run, result = trained
    assert f"{TASK}, agent ppo, size cpu (no CUDA found): 8 envs, 1 agent, net " in result.stdout
    assert "Starting the simulation on " in result.stdout
    assert f"Run folder: {run}" in result.stdout
    assert "3/3 (100%) | steps/s" in result.stdout and "ETA 0:00:00" in result.stdout
    assert len(result.stdout.splitlines()) < 12, "a short run prints little"


def test_run_folder_holds_config_git_state_curves_and_checkpoints(trained):
    _, run, _ = trained
    assert run.name.endswith("_first")
    assert json.loads((run / "run.json").read_text())["task"] == TASK
    assert "num_envs: 8" in (run / "params" / "env.yaml").read_text()
    assert "seed: 3" in (run / "params" / "agent.yaml").read_text()
    assert list((run / "git").iterdir())
    assert "scripts/train.py" in (run / "command.txt").read_text()
    assert "Reward Manager" in (run / "setup.log").read_text()
    columns, rows = read_curves(run / "curves.csv")
    assert [row["iteration"] for row in rows] == ["0", "1", "2"]
    assert [row["Perf/total_steps"] for row in rows] == ["32", "64", "96"]
    assert {"Loss/surrogate", "Loss/learning_rate", "Policy/mean_std"} <= set(columns)
    assert (run / "curves.png").exists() and list(run.glob("events.*"))
    assert {path.name for path in run.glob("model_*.pt")} == {"model_0.pt", "model_2.pt"}


def test_resume_goes_on_in_the_same_folder_until_the_total(trained):
    folder, run, _ = trained
    result = script("train", *SMALL, "--max_iterations", "5", "--run_name", "first", "--resume", cwd=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "5/5 (100%)" in result.stdout
    rows = read_curves(run / "curves.csv")[1]
    assert [row["iteration"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row["Perf/total_steps"] for row in rows] == ["32", "64", "96", "128", "160"]
    assert len(list(run.parent.iterdir())) == 1


def test_same_seed_gives_the_same_run(trained, tmp_path):
    _, run, _ = trained
    script("train", *SMALL, "--max_iterations", "3", "--seed", "3", cwd=tmp_path)
    (other,) = tmp_path.glob("logs/rsl_rl/anymal_flat/*")
    first, second = (torch.load(path / "model_2.pt", weights_only=False) for path in (run, other))
    for name, weights in first["actor_state_dict"].items():
        assert torch.equal(weights, second["actor_state_dict"][name]), name


def test_play_finds_the_latest_run_prints_the_metric_and_films(trained):
    folder, run, _ = trained
    options = ["--task", TASK, "--num_envs", "2", "--seed", "0", "--video", "--video_length", "6", "--full_episodes"]
    result = script("play", *options, "env.episode_length_s=0.5", cwd=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    assert str(run) in result.stdout
    row = next(line for line in result.stdout.splitlines() if "| master" in line).split("|")
    assert row[5].strip() == "2" and "Metrics/episode_return" in result.stdout
    (video,) = (run / "videos").iterdir()
    assert video.suffix in (".gif", ".mp4") and video.stat().st_size > 10_000
    if video.suffix == ".gif":
        from PIL import Image

        with Image.open(video) as image:
            frame = image.convert("RGB")
        colors = {color for _, color in frame.getcolors(frame.width * frame.height)}
        orange = [c for c in colors if c[0] > 150 and c[1] < 0.75 * c[0] and c[2] < 0.5 * c[0]]
        assert orange, "the feet can be seen"


def test_ctrl_c_saves_a_checkpoint_and_ends_cleanly(tmp_path):
    command = [sys.executable, str(ROOT / "scripts" / "train.py"), *SMALL, "--max_iterations", "100000"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, "agent.save_interval=100000"], cwd=tmp_path, stdout=log, stderr=log)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("logs/rsl_rl/*/*/curves.csv")) and time.monotonic() < deadline:
        assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        time.sleep(0.5)
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    (run,) = tmp_path.glob("logs/rsl_rl/anymal_flat/*")
    last = int(checkpoints(run)[-1].stem.removeprefix("model_"))
    assert last > 0 and str(last) == read_curves(run / "curves.csv")[1][-1]["iteration"]
    assert (run / "curves.png").exists()
    text = (tmp_path / "log").read_text()
    assert "Stopped by SIGINT; the checkpoint is saved." in text and "Traceback" not in text


def test_bad_input_from_the_shell(tmp_path):
    result = script("train", "--task", "Epo-Anymal-Flt-v0", cwd=tmp_path)
    assert_bad_input(result, "train: unknown task 'Epo-Anymal-Flt-v0'. Did you mean Epo-Anymal-Flat-v0")
    assert not list(tmp_path.iterdir()), "nothing was written"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--task is missing"),
        (["--task", "CartPole-v1"], "unknown task 'CartPole-v1'"),
        (["--task", TASK, "--agent", "sca"], "has no agent 'sca'; it has: cem_rl, cpo, epo, "),
        (["--task", TASK, "--profile", "tpu"], "unknown profile 'tpu': there are cpu, gpu, paper"),
        (["--task", TASK, "--experiment", "none"], "unknown experiment 'none'"),
        (["--task", TASK, "--numenvs", "3"], "unknown argument '--numenvs'"),
        (["--task", TASK, "--device", "cuda:7"], "try --device cpu"),
        (["--task", TASK, "--num_envs", "0"], "a number from 1 to"),
        (["--task", TASK, "--viz", "hologram"], "hologram"),
        (["--task", TASK, "--viz", "kit"], "Isaac Sim is not installed"),
        (["--task", TASK, "physics=isaacsim_physx"], "Isaac Sim is not installed"),
        (["--task", TASK, "--viz", "kit", "physics=ovphysx"], "kitless"),
        (["--task", TASK, "physics=bullet"], "its presets are physics: isaacsim_physx, newton_mjwarp, ovphysx"),
        (["--task", TASK, "presets=nonsense"], "presets=nonsense does not fit"),
        (["--task", TASK, "env.sim.dtt=1"], "env.sim has no 'dtt'. Did you mean dt?"),
        (["--task", "Epo-A1-Flat-v0", "agent.algorithm.num_agents=7"], "agent.algorithm has no 'num_agents'"),
        (
            ["--task", TASK, "--num_envs", "512", "agent.algorithm.num_agents=7"],
            "7 agents cannot share 512 environments",
        ),
        (["--task", TASK, "--resume"], "no run of Epo-Anymal-Flat-v0 with a checkpoint"),
        (["--task", TASK, "--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(refuse, tmp_path, arguments, says):
    refuse("train", *arguments, says=says)
    assert not list(tmp_path.iterdir())


def test_damaged_checkpoint_is_refused(refuse, trained, tmp_path):
    _, run, _ = trained
    (tmp_path / "damaged.pt").write_bytes((run / "model_2.pt").read_bytes()[:1000])
    for command in ("train", "play"):
        refuse(command, "--task", TASK, "--checkpoint", "damaged.pt", says="it is damaged or none")
    assert os.listdir(tmp_path) == ["damaged.pt"], "no half-made run folder"


def test_a_view_that_does_not_exist_is_refused(refuse, trained):
    options = ["--checkpoint", str(trained[1]), "--video", "--view", "below"]
    refuse("play", *options, says="this task has no view 'below'; it has: front")


def test_a_place_that_cannot_be_written_to_is_refused(refuse, tmp_path):
    (tmp_path / "logs").write_text("a file where a folder should be")
    refuse("train", "--task", TASK, says="cannot write to")


def test_checkpoint_of_another_network_is_refused_after_the_start(trained, tmp_path):
    _, run, _ = trained
    options = [*SMALL, "--max_iterations", "1", "--checkpoint", str(run), "agent.actor.hidden_dims=[8,8]"]
    assert_bad_input(script("train", *options, cwd=tmp_path), "does not fit this task and agent")
    assert not list(tmp_path.iterdir()), "no half-made run folder"


def test_the_headline_command_trains_a_population_that_plays(tmp_path):
    task = ["--task", "Epo-Kuka-TwoArm-Reorient-v0"]
    result = script("train", *task, "--num_envs", "8", "--max_iterations", "2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "size cpu (no CUDA found): 8 envs, 8 agents, net LSTM 128 + 128-128, OvPhysx on cpu" in result.stdout
    (checkpoint,) = tmp_path.glob("logs/rsl_rl/kuka_twoarm_reorient/*/model_1.pt")
    content = torch.load(checkpoint, weights_only=False)
    assert content["run"]["env"]["goal"]["tolerance"].item() == pytest.approx(0.075), "the curriculum is saved"
    film = ["--num_envs", "1", "--video", "--video_length", "2", "--view", "side", "--export"]
    played = script("play", *task, *film, cwd=tmp_path)
    assert played.returncode == 0, played.stderr[-3000:]
    assert list(checkpoint.parent.glob("videos/model_1.*"))
    assert {path.name for path in (checkpoint.parent / "exported").iterdir()} >= {"policy.pt", "policy.onnx"}
