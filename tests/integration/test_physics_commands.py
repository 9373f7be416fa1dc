"""``agent.save_physics``: a run on physics that was stopped goes on in the middle of its episodes."""

import subprocess
import sys

import pytest
import torch

from support.command import ROOT, script
from support.equality import assert_same

pytestmark = pytest.mark.integration

STEPS, ENVS = 4, 8
TASK = "Epo-Anymal-Flat-v0"
SMALL = [
    *("--task", TASK, "--num_envs", str(ENVS), "--seed", "3", "agent.save_physics=true", "agent.save_interval=2"),
    *(f"agent.num_steps_per_env={STEPS}", "agent.init_at_random_ep_len=false", "env.sim.physics.deterministic=true"),
]
BEGINS_ANEW = "Every environment begins a new episode"


def train(folder, iterations, *more):
    result = script("train", *SMALL, "--max_iterations", str(iterations), *more, cwd=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def run_of(folder):
    (run,) = folder.glob("logs/rsl_rl/anymal_flat/*")
    return run


def last_checkpoint(folder, iteration):
    return torch.load(run_of(folder) / f"model_{iteration}.pt", weights_only=False)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """A folder with a run of three iterations that was resumed for two more, and what the second command said."""
    folder = tmp_path_factory.mktemp("user")
    train(folder, 3)
    assert torch.load(run_of(folder) / "physics.pt", weights_only=True)["iter"] == 2
    return folder, train(folder, 5, "--resume")


def test_episodes_go_on_over_the_stop(resumed):
    folder, said = resumed
    assert BEGINS_ANEW not in said
    lengths = last_checkpoint(folder, 4)["run"]["logger"]["episode_lengths"]
    assert lengths.max() == 5 * STEPS, "no episode reaches from before the stop to after it"
    saved = torch.load(run_of(folder) / "physics.pt", weights_only=True)
    assert saved["iter"] == 4 and torch.equal(saved["physics"]["leaves"]["env/episode_length_buf"], lengths.long())
    assert not list(run_of(folder).glob(".*.next"))


@pytest.mark.slow
def test_the_resumed_run_is_the_uninterrupted_one(resumed, tmp_path):
    train(tmp_path, 5)
    whole, parts = last_checkpoint(tmp_path, 4), last_checkpoint(resumed[0], 4)
    for name, weights in whole["actor_state_dict"].items():
        assert torch.equal(weights, parts["actor_state_dict"][name]), name
    assert torch.equal(whole["run"]["rng"]["torch"], parts["run"]["rng"]["torch"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "more", "because"),
    [
        ("cut", [], "physics.pt belongs to another checkpoint, or is damaged"),
        ("delete", [], "this checkpoint does not hold the state of its simulation"),
        (None, ["--num_envs", "16"], "this command changes the environments (--num_envs 16 (was 8))"),
        (None, ["env.episode_length_s=20.0"], "this command changes the environments (env.episode_length_s=20.0)"),
    ],
)
def test_what_cannot_go_on_begins_anew_and_says_why(tmp_path, damage, more, because):
    train(tmp_path, 1)
    file = run_of(tmp_path) / "physics.pt"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-5000])
    elif damage == "delete":
        file.unlink()
    said = train(tmp_path, 2, "--resume", *more)
    assert f"{BEGINS_ANEW}: {because}" in said, said


@pytest.mark.slow
def test_every_process_goes_on_with_its_own(tmp_path):
    def launch(folder, iterations, *more):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29674"]
        command += [str(ROOT / "scripts/train.py"), *SMALL, "--agent", "epo", "agent.algorithm.num_agents=4"]
        command += ["--max_iterations", str(iterations), *more]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=580)
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    for folder in (stopped, whole):
        folder.mkdir()
    launch(stopped, 1)
    assert BEGINS_ANEW not in launch(stopped, 2, "--resume")
    launch(whole, 2)
    for name in ("physics.pt", "physics_1.pt"):
        files = [torch.load(run_of(folder) / name, weights_only=True) for folder in (stopped, whole)]
        assert all(file["iter"] == 1 and file["world_size"] == 2 for file in files)
        assert_same(*({part: file[part] for part in ("rng", "parts", "running")} for file in files), name)
        assert_same(*(file["physics"]["scene"] for file in files), name)
    learned = [last_checkpoint(folder, 1)["actor_state_dict"] for folder in (stopped, whole)]
    assert_same(*map(dict, learned))
