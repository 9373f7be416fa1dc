"""ES as an agent: whole episodes of every member, a lineage that repeats the run, and every command."""

import argparse
import json
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict

from epo_lab.algorithms.off_policy.es import ES
from epo_lab.base.errors import UserError
from epo_lab.commands.evaluate import evaluate
from epo_lab.commands.play import play
from epo_lab.commands.train import train
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.cyclic_mdp import CyclicMdpEnv
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.models.members import flatten, network_parameters, write_row
from epo_lab.population.es import replay
from epo_lab.population.first_episodes import FirstEpisodes
from support.command import ROOT
from support.equality import assert_same

pytestmark = pytest.mark.integration

SMOOTH, MEMORY, CYCLIC = "Epo-Diag-Smooth-v0", "Epo-Diag-Memory-v0", "Epo-Diag-CyclicMdp-v0"


def make(env, task: str, members: int, **es) -> ES:
    torch.manual_seed(0)
    cfg = agent_settings(task, "es")["agent"]
    cfg["algorithm"] |= {"num_agents": members, "es": cfg["algorithm"]["es"] | es}
    cfg["algorithm"]["fitness"]["source"] = "return"
    algorithm = ES.construct_algorithm(env.get_observations(), env, cfg, "cpu")
    algorithm.train_mode()
    return algorithm


def iterate(algorithm: ES, env, steps: int) -> list[dict]:
    """Make one iteration as the runner does, and return the generations that ended."""
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(steps):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
    algorithm.learn()
    algorithm.evolve()
    return algorithm.records()["generations"]


# --- what a member is judged by


def test_fitness_is_the_mean_of_the_first_whole_episodes():
    """Against a loop over environments with random endings."""
    ids = torch.tensor([0, 0, 1, 1])
    tracker = FirstEpisodes(ids, 2, min_coverage=1.0, min_episodes=3)
    tracker.begin(torch.tensor([True, False, True, False]))
    generator = torch.Generator().manual_seed(4)
    running, began = [0.0] * 4, [True, False, True, False]
    finished: list[list[float]] = [[] for _ in range(4)]
    for _ in range(60):
        rewards = torch.randn(4, generator=generator)
        dones = (torch.rand(4, generator=generator) < 0.2).long()
        enough = all(len(values) >= 3 for values in finished)
        assert (tracker.complete() is not None) == enough
        tracker.step(rewards, dones, {})
        for env in range(4):
            running[env] += float(rewards[env])
            if dones[env]:
                if began[env]:
                    finished[env].append(running[env])
                running[env], began[env] = 0.0, True
    expected = [sum(sum(finished[e][:3]) / 3 for e in pair) / 2 for pair in ((0, 1), (2, 3))]
    assert tracker.complete().values.tolist() == pytest.approx(expected, abs=1e-5)
    assert max(len(values) for values in finished) > 3, "later episodes do not count"


def test_a_generation_is_judged_by_whole_episodes_of_its_own_members():
    env = SmoothEnv(40, seed=1)
    algorithm = make(env, SMOOTH, 10)
    env.episode_length_buf.fill_(7)  # as a runner may begin
    algorithm.train_mode()
    assert iterate(algorithm, env, env.horizon) == [], "the first step ends what had begun"
    theta = algorithm.evolution.theta.clone()
    rows = algorithm.members.policies.rows.clone()
    (record,) = iterate(algorithm, env, 1)
    assert record["generation"] == 0 and len(record["fitness"]) == 10
    assert not torch.equal(theta, algorithm.evolution.theta)
    assert not torch.equal(rows, algorithm.members.policies.rows)
    assert torch.equal(flatten(list(network_parameters(algorithm.policy()))), algorithm.evolution.theta)
    # these episodes ended with the last step: the next ones are whole, and need no step more
    (record,) = iterate(algorithm, env, env.horizon)
    assert record["generation"] == 1


def test_fitness_is_what_each_member_reaches_alone():
    env = SmoothEnv(40, seed=1)
    algorithm = make(env, SMOOTH, 10)
    env.step(torch.zeros(40, 2))
    algorithm.train_mode()
    iterate(algorithm, env, 1)
    start = {name: value.clone() for name, value in env.state.items()}
    rows, ids = algorithm.members.policies.rows.clone(), algorithm.members.agent_ids.clone()
    noise = env.generator.get_state()
    (record,) = iterate(algorithm, env, env.horizon)
    returns = torch.zeros(10, 4, dtype=torch.float64)
    for member in range(10):
        write_row(rows[member], list(network_parameters(algorithm.actor)))
        again = SmoothEnv(40, seed=1)
        again.state = {name: value.clone() for name, value in start.items()}
        again.generator.set_state(noise)
        total = torch.zeros(40)
        for _ in range(env.horizon):
            _, rewards, _, _ = again.step(algorithm.actor(again.get_observations()))
            total += rewards
        returns[member] = total[ids == member].double()
    assert record["fitness"] == pytest.approx(returns.mean(dim=1).tolist(), rel=1e-4)


def test_the_population_must_share_the_environments():
    env = SmoothEnv(30)
    with pytest.raises(UserError, match="20 agents cannot share 30 environments"):
        make(env, SMOOTH, 20)
    with pytest.raises(UserError, match="even number of members, not 15"):
        make(env, SMOOTH, 15)


def test_nothing_is_asked_of_the_device_during_a_roll_out(monkeypatch):
    env = SmoothEnv(40, seed=1)
    algorithm = make(env, SMOOTH, 10)
    obs = TensorDict({"policy": torch.zeros(40, 5)}, batch_size=[40])
    asked = []
    for name in ("item", "tolist", "nonzero", "__bool__", "__float__", "__int__"):
        original = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda *args, _call=original, _name=name, **more: (asked.append(_name), _call(*args))[1]
        )
    with torch.inference_mode():
        for _ in range(3):
            algorithm.act(env.get_observations())
            algorithm.process_env_step(obs, torch.zeros(40), torch.zeros(40, dtype=torch.long), {})
    assert asked == []


# --- learning


def test_it_solves_the_cyclic_mdp_within_a_hundred_episodes_of_a_member():
    """ESAC's Figure 2: most members fall at once, and one generation finds the way round."""
    env = CyclicMdpEnv(50, seed=0)
    env.horizon = env.max_episode_length = 200
    algorithm = make(env, CYCLIC, 50, sigma=0.1, learning_rate=0.1)
    for _ in range(100):
        iterate(algorithm, env, 202)
        if algorithm.score() >= 199.0:
            break
    assert algorithm.score() > 190.0 and algorithm.evolution.number <= 100


# --- commands


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, the same one in two parts, and one of a recurrent policy in two parts."""
    folder = tmp_path_factory.mktemp("es")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        trained(SMOOTH, "whole", 28)
        trained(SMOOTH, "broken", 15)
        trained(SMOOTH, "broken", 28, resume=True)
        trained(MEMORY, "whole", 12)
        trained(MEMORY, "broken", 7)
        trained(MEMORY, "broken", 12, resume=True)
    return folder


def options(**more) -> argparse.Namespace:
    names = ("profile", "experiment", "device", "viz", "logger", "log_project_name", "checkpoint", "experiment_name")
    common = dict.fromkeys((*names, "run_name", "max_iterations", "seed", "agent", "output", "physics"), None)
    flags = {"resume": False, "auto_resume": False, "verbose": True, "num_envs": None, "task": SMOOTH}
    return argparse.Namespace(**{**common, **flags, **more})


def trained(task: str, run_name: str, iterations: int, **more) -> None:
    args = options(task=task, agent="es", seed=2, num_envs=80, run_name=run_name, max_iterations=iterations, **more)
    assert train(args, ["agent.save_interval=2"], ROOT / "config") == 0


def run_folder(root: Path, task: str, name: str) -> Path:
    return next((root / "logs/rsl_rl" / task.removesuffix("-v0").removeprefix("Epo-").lower().replace("-", "_")).glob(f"*_{name}"))  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(("task", "last"), [(SMOOTH, 27), (MEMORY, 11)])
def test_a_resumed_run_is_the_same_run(runs, task, last):
    whole, broken = (run_folder(runs, task, name) for name in ("whole", "broken"))
    contents = [torch.load(run / f"model_{last}.pt", weights_only=False) for run in (whole, broken)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    lines = [(run / "generations.jsonl").read_text() for run in (whole, broken)]
    assert lines[0] == lines[1] and lines[0].count("\n") > 3


def test_the_lineage_of_a_run_repeats_its_master(runs):
    whole = run_folder(runs, SMOOTH, "whole")
    records = [json.loads(line) for line in (whole / "generations.jsonl").read_text().splitlines()]
    content = torch.load(whole / "model_27.pt", weights_only=True)
    first = torch.load(whole / "model_0.pt", weights_only=True)["parts"]["evolution"]["theta"]
    assert not torch.equal(first, content["parts"]["evolution"]["theta"])
    shapes = [value.shape for name, value in content["actor_state_dict"].items() if name.startswith("mlp")]
    assert torch.equal(replay(first, shapes, records), content["parts"]["evolution"]["theta"])
    weights = [value.flatten() for name, value in content["actor_state_dict"].items() if name.startswith("mlp")]
    assert torch.equal(torch.cat(weights), content["parts"]["evolution"]["theta"]), "the master is theta"


def test_it_is_played_exported_and_evaluated(runs, monkeypatch):
    monkeypatch.chdir(runs)
    whole = run_folder(runs, SMOOTH, "whole")
    shared = {"checkpoint": str(whole), "episodes": 1, "train_env_cfg": False, "num_envs": 7}
    assert play(options(members="master", video=False, export=True, **shared), [], ROOT / "config") == 0
    exported = torch.jit.load(str(whole / "exported/policy.pt"))
    env = SmoothEnv(6, seed=3)
    algorithm = make(SmoothEnv(10), SMOOTH, 10)
    content = torch.load(whole / "model_27.pt", weights_only=True)
    algorithm.load(content, {"actor": True}, strict=True)
    obs = env.get_observations()
    assert torch.allclose(exported(obs["policy"]), algorithm.policy()(obs), atol=1e-6)
    assert algorithm.policy()(obs).abs().max() <= 1.0
    shared |= {"checkpoint": [str(whole)], "num_envs": None}
    assert evaluate(options(members="all", seeds="1", **shared), [], ROOT / "config") == 0
    (scored,) = json.loads((whole / "evaluation.json").read_text())["evaluations"]
    assert scored["agent"] == 0
