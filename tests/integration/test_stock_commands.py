"""Isaac Lab's own commands work on every task we have, on CPU, with both kit-less engines."""

import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import isaaclab_tasks  # noqa: F401
import pytest

import epo_tasks  # noqa: F401
from support.command import ROOT, isaaclab
from support.simulate import ENGINES

pytestmark = pytest.mark.integration

TASKS = sorted(name for name, spec in gym.registry.items() if str(spec.entry_point).startswith("epo_tasks."))


def on_every_task_and_engine(*default: tuple[str, str]):
    """Run a test on all, of which only these by default: the whole matrix takes half an hour (``-m slow``)."""
    pairs = [(task, engine) for task in TASKS for engine in ENGINES]
    marks = {pair: () if pair in default else pytest.mark.slow for pair in pairs}
    return pytest.mark.parametrize(("task", "engine"), [pytest.param(*pair, marks=marks[pair]) for pair in pairs])


def test_list_envs_shows_our_tasks():
    result = isaaclab("list_envs", cwd=ROOT)
    assert result.returncode == 0
    assert TASKS and all(task in result.stdout for task in TASKS)
    assert "Isaac-Cartpole" not in result.stdout, "in this project only its own tasks are listed"


@pytest.mark.parametrize("task", TASKS)
def test_every_task_declares_the_three_engines(task):
    from isaaclab_tasks.utils.preset_cli import enumerate_task_presets
    from isaaclab_tasks.utils.preset_target import PresetTarget

    presets = enumerate_task_presets(task)
    assert presets is not None
    assert {"ovphysx", "newton_mjwarp", "isaacsim_physx"} <= set(presets[PresetTarget.PHYSICS])


@on_every_task_and_engine(("Epo-Kuka-TwoArm-Reorient-Partition-v0", "ovphysx"))
def test_agents_without_a_policy_run(task, engine, tmp_path):
    for agent in ("random_agent", "zero_agent"):
        options = ["--task", task, "--num_envs", "4", "--max_steps", "5", "--viz", "none", f"physics={engine}"]
        result = isaaclab(agent, *options, cwd=tmp_path)
        assert result.returncode == 0, result.stderr[-3000:]


@on_every_task_and_engine()
def test_stock_train_and_play_run(task, engine, tmp_path):
    options = ["--task", task, "--num_envs", "8", "--device", "cpu", f"physics={engine}"]
    trained = isaaclab("train", *options, "--max_iterations", "2", "agent.num_steps_per_env=4", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr[-3000:]
    (checkpoint,) = tmp_path.glob("logs/rsl_rl/*/*/model_1.pt")
    # play has no end of its own without a video: it is stopped once it runs
    command = ["play", *options, "--checkpoint", str(checkpoint), "--viz", "none"]
    assert "Policy playback is running" in play_until_running(command, tmp_path)


def test_a_population_trains_and_plays_with_stock_commands(tmp_path):
    options = ["--task", "Epo-Anymal-Flat-v0", "--agent", "rsl_rl_epo_cfg_entry_point", "--device", "cpu"]
    settings = ["agent.num_steps_per_env=4", "agent.algorithm.num_agents=4"]
    trained = isaaclab("train", *options, "--num_envs", "16", "--max_iterations", "3", *settings, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr[-3000:]
    assert "Population/gene_spread" in trained.stdout, "the population's numbers reach rsl_rl's own log"
    (checkpoint,) = tmp_path.glob("logs/rsl_rl/*/*/model_2.pt")
    # three environments cannot be shared by four agents, but the master can play in them
    command = ["play", *options, "--num_envs", "3", "--checkpoint", str(checkpoint), "--viz", "none", settings[1]]
    assert "Policy playback is running" in play_until_running(command, tmp_path)


def play_until_running(command: list[str], cwd: Path) -> str:
    log = cwd / "play.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "isaaclab", *command], cwd=cwd, stdout=file, stderr=file
        )
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline and "playback is running" not in log.read_text():
        time.sleep(0.5)
    time.sleep(2.0)
    running = process.poll() is None
    # Note: where the tests themselves run in the background, interrupts are ignored and would leave it running
    process.kill()
    process.wait(timeout=60)
    assert running, log.read_text()[-3000:]
    return log.read_text()
