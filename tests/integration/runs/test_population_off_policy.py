"""CEM-RL and ESAC as agents: who plays, what is stored and learned, and runs that go on to the last bit."""

import argparse
import json
import re
from pathlib import Path

import pytest
import torch

from epo_lab.algorithms.off_policy.cem_rl import CemRl, Learners
from epo_lab.algorithms.off_policy.es import ES
from epo_lab.algorithms.off_policy.esac import ESAC
from epo_lab.algorithms.off_policy.gradient import GradientStep
from epo_lab.base.errors import UserError
from epo_lab.base.options import merge
from epo_lab.commands.evaluate import evaluate
from epo_lab.commands.play import play
from epo_lab.commands.train import train
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.models.members import flatten, network_parameters
from epo_lab.report.figures import figures
from epo_lab.report.record import read_run
from epo_lab.storage.replay import CUT
from support.command import ROOT
from support.equality import assert_same

pytestmark = pytest.mark.integration

SMOOTH = "Epo-Diag-Smooth-v0"
SMALL = {"batch_size": 32, "warmup_steps": 200, "updates_per_step": 0.5, "replay": {"size": 20_000}}


def make(kind, agent: str, env, **changes):
    torch.manual_seed(0)
    cfg = agent_settings(SMOOTH, agent)["agent"]
    small = SMALL if "replay" in cfg["algorithm"] else {}
    cfg["algorithm"] = merge(cfg["algorithm"], small, {"num_agents": 5}, changes)
    algorithm = kind.construct_algorithm(env.get_observations(), env, cfg, "cpu")
    algorithm.train_mode()
    return algorithm


def iterate(algorithm, env, steps: int) -> list[dict]:
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(steps):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
        algorithm.compute_returns(obs)
    algorithm.learn()
    algorithm.evolve()
    return algorithm.records()["generations"]


# --- CEM-RL


def test_half_of_the_members_learn_before_they_are_judged():
    env = SmoothEnv(10, seed=1)
    algorithm = make(CemRl, "cem_rl", env)
    assert iterate(algorithm, env, 15) == [], "random actions: nobody is judged"
    assert not algorithm._judges
    drawn = algorithm.evolution.ask()
    iterate(algorithm, env, 10)
    rows = algorithm.members.policies.rows
    moved = [not torch.equal(row, first) for row, first in zip(rows, drawn, strict=True)]
    assert moved == [True, True, False, False, False]
    assert algorithm.clock.gradient_steps == 12, "half a step for each of 25 control steps"
    trained = rows.clone()
    records = [record for _ in range(6) for record in iterate(algorithm, env, 10)]
    assert len(records) == 1 and len(records[0]["fitness"]) == 5
    best = torch.tensor(records[0]["fitness"]).topk(2).indices
    weights = torch.tensor([3.0, 1.5]).log()
    mean = (weights / weights.sum()) @ trained[best]
    assert torch.allclose(algorithm.evolution.mean, mean, atol=1e-6), "mean of the two best, as gradients left them"
    assert torch.equal(flatten(list(network_parameters(algorithm.policy()))), algorithm.evolution.mean)


def test_actors_that_learn_together_learn_as_each_alone():
    env = SmoothEnv(10, seed=1)
    algorithm = make(CemRl, "cem_rl", env)
    iterate(algorithm, env, 30)
    rows = algorithm.members.policies.rows[:3].clone() + 0.1 * torch.randn(3, algorithm.members.policies.rows.shape[1])
    batch = algorithm._batch()
    results = []
    for chosen in (slice(0, 3), slice(0, 1), slice(1, 2), slice(2, 3)):
        actors = Learners(algorithm.members.policies, algorithm.actor, rows[chosen])
        step = GradientStep([actors.rows], 1e-3)
        for _ in range(3):
            algorithm.learner.actor_update(batch, actors, step)
        results.append(actors.rows.detach())
    assert torch.allclose(results[0], torch.cat(results[1:]), atol=1e-6)
    assert not torch.allclose(results[0], rows, atol=1e-4)


def test_an_episode_that_was_cut_off_is_not_learned_from():
    env = SmoothEnv(10, seed=1)
    algorithm = make(CemRl, "cem_rl", env)
    iterate(algorithm, env, 25)
    ends = algorithm.replay._data["ending"]
    before = algorithm.replay.head
    iterate(algorithm, env, 3)
    assert (ends[before] == CUT).all(), "the first step of a generation ends what had begun"
    assert not (ends[before + 1 : before + 3] == CUT).any()


# --- ESAC


def test_sac_begins_then_the_population_plays_and_only_sac_is_stored():
    env = SmoothEnv(10, seed=1)
    algorithm = make(ESAC, "esac", env, esac={"gradient_interval": 2, "sac_episodes": 10})
    while algorithm._sac_plays:
        iterate(algorithm, env, 10)
    stored, steps = algorithm.replay.num_transitions, algorithm.clock.steps
    assert stored == 10 * steps and algorithm.clock.gradient_steps > 0
    assert torch.equal(algorithm.members.policies.rows[0], flatten(list(network_parameters(algorithm.actor))))
    learned = algorithm.clock.gradient_steps
    records = []
    while not algorithm._sac_plays:
        records += iterate(algorithm, env, 10)
    assert len(records) == 2, "the gate is open after every second generation"
    assert algorithm.replay.num_transitions == stored and algorithm.clock.gradient_steps == learned
    assert algorithm.clock.steps > steps, "all steps count"
    iterate(algorithm, env, 10)
    assert algorithm.replay.num_transitions == stored + 100 and algorithm.clock.gradient_steps == learned + 5


def test_what_was_stored_last_is_not_followed_by_what_comes_next():
    env = SmoothEnv(10, seed=1)
    algorithm = make(ESAC, "esac", env, esac={"gradient_interval": 1, "sac_episodes": 10})
    while algorithm._sac_plays:
        iterate(algorithm, env, 10)
    last = algorithm.replay.head - 1
    assert (algorithm.replay._data["ending"][last] == CUT).all()


def test_the_population_fills_the_replay_if_asked_to():
    env = SmoothEnv(10, seed=1)
    algorithm = make(ESAC, "esac", env, esac={"population_fills_replay": True, "gradient_interval": 100})
    for _ in range(20):
        iterate(algorithm, env, 10)
    assert not algorithm._sac_plays
    assert algorithm.replay.num_transitions == 10 * algorithm.clock.steps


def test_the_master_is_the_best_of_the_last_generation():
    env = SmoothEnv(10, seed=1)
    algorithm = make(ESAC, "esac", env)
    while algorithm._sac_plays:
        iterate(algorithm, env, 10)
    rows = algorithm.members.policies.rows.clone()
    records = []
    while not records:
        records = iterate(algorithm, env, 10)
    best = int(torch.tensor(records[0]["fitness"]).argmax())
    assert torch.equal(flatten(list(network_parameters(algorithm.policy()))), rows[best])
    assert algorithm.score() == max(records[0]["fitness"])


@pytest.mark.parametrize(("kind", "agent"), [(CemRl, "cem_rl"), (ESAC, "esac")])
def test_the_population_must_share_the_environments(kind, agent):
    with pytest.raises(UserError, match="5 agents cannot share 12 environments"):
        make(kind, agent, SmoothEnv(12))


def test_the_share_of_winners_that_winners_bred_is_told():
    env = SmoothEnv(10, seed=1)
    algorithm = make(ESAC, "esac", env, esac={"gradient_interval": 100})
    records = []
    while len(records) < 3:
        new = iterate(algorithm, env, 10)
        if new:
            # two of five win; their children are in slots 1 and 2, of the second generation on
            bred = sum(slot in (1, 2) for slot in new[0]["winners"]) / 2 if records else 0.0
            assert algorithm.scalars()["Generation/winners_bred"] == bred
        records += new


def test_every_tag_is_documented():
    named = set(re.findall(r"`([A-Za-z]+/[a-z_0-9]+)`", (ROOT / "docs/metrics.md").read_text()))
    named |= {f"Population/fitness_{name}" for name in ("q25", "median", "q75", "max")}
    for kind, agent in ((CemRl, "cem_rl"), (ESAC, "esac"), (ES, "es")):
        env = SmoothEnv(10, seed=1)
        changes = {"es": {"mirrored": False}} if kind is ES else {}
        algorithm = make(kind, agent, env, **changes)
        records, tags = [], set()
        while len(records) < 2:
            records += iterate(algorithm, env, 10)
            tags |= algorithm.scalars().keys()
        assert len(tags) > 8
        assert not tags - named, f"{agent}: docs/metrics.md does not name {sorted(tags - named)}"


# --- commands


def options(**more) -> argparse.Namespace:
    names = ("profile", "experiment", "device", "viz", "logger", "log_project_name", "checkpoint", "experiment_name")
    common = dict.fromkeys((*names, "run_name", "max_iterations", "seed", "agent", "output", "physics"), None)
    flags = {"resume": False, "auto_resume": False, "verbose": True, "num_envs": None, "task": SMOOTH}
    return argparse.Namespace(**{**common, **flags, **more})


def trained(agent: str, run_name: str, iterations: int, **more) -> Path:
    args = options(agent=agent, seed=2, num_envs=10, run_name=run_name, max_iterations=iterations, **more)
    changes = [f"agent.algorithm.{name}={value}" for name, value in SMALL.items() if name != "replay"]
    changes += ["agent.algorithm.num_agents=5", "agent.algorithm.replay.size=20000", "agent.save_interval=2"]
    changes += ["agent.num_steps_per_env=10", "agent.algorithm.learning_rate=0.001"]
    assert train(args, changes, ROOT / "config") == 0
    return next(Path("logs/rsl_rl/diag_smooth").glob(f"*_{run_name}"))


@pytest.mark.parametrize("agent", ["cem_rl", "esac", "esac_paper"])
def test_a_resumed_run_is_the_same_run_and_its_master_is_played(agent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = trained(agent, "whole", 24)
    trained(agent, "broken", 15)
    broken = trained(agent, "broken", 24, resume=True)
    contents = [torch.load(run / "model_23.pt", weights_only=False) for run in (whole, broken)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    lines = [(run / "generations.jsonl").read_text() for run in (whole, broken)]
    assert lines[0] == lines[1] and lines[0].count("\n") > 1
    if agent == "esac":
        panels = {anchor: len(made) for anchor, (_, made) in figures(read_run(whole), None).items()}
        assert (panels["weights"], panels["replay"]) == (8, 8), "of ESAC; only CEM-RL has a spread of parameters"
        shared = {"episodes": 1, "train_env_cfg": False}
        args = options(members="master", video=False, export=True, checkpoint=str(whole), num_envs=3, **shared)
        assert play(args, [], ROOT / "config") == 0
        exported = torch.jit.load(str(whole / "exported/policy.pt"))
        obs = SmoothEnv(6, seed=3).get_observations()
        algorithm = make(ESAC, agent, SmoothEnv(10))
        algorithm.load(contents[0], {"actor": True}, strict=True)
        assert torch.allclose(exported(obs["policy"]), algorithm.policy()(obs), atol=1e-6)
        assert evaluate(options(members="all", seeds="1", checkpoint=[str(whole)], **shared), [], ROOT / "config") == 0
        assert len(json.loads((whole / "evaluation.json").read_text())["evaluations"]) == 1
