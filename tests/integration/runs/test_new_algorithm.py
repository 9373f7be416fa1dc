"""A new algorithm costs a class, its options, a row of the table and a preset; every command then knows it."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from rsl_rl.models import MLPModel

from epo_lab.algorithms import registry
from epo_lab.algorithms.base import Algorithm, Log, Part, load_parts, part_states
from epo_lab.base.clock import Clock
from epo_lab.commands.evaluate import evaluate
from epo_lab.commands.play import play
from epo_lab.commands.report import report
from epo_lab.commands.train import train
from epo_lab.configs import names, presets
from support.command import ROOT
from support.equality import assert_same

pytestmark = pytest.mark.integration

TASK = "Epo-Diag-Smooth-v0"


# --- what somebody who adds an algorithm writes


@dataclass
class HillClimbOptions:
    """Settings of :class:`HillClimb`."""

    step_size: float = 0.1
    """Standard deviation of a step in the weights."""


class HillClimb(Algorithm):
    """Tries one random step of the weights an iteration, and takes it back if the reward was lower."""

    learning_rate = 0.0

    def __init__(self, model: Any, step_size: float, num_steps: int, seed: int) -> None:
        self.model, self._step_size, self._num_steps = model, step_size, num_steps
        self.clock = Clock()
        self._generator = torch.Generator().manual_seed(seed)
        self._rewards = torch.zeros(())
        self._climb = {"best": -float("inf"), "weights": self._weights()}
        self._log = Log("climb")

    @staticmethod
    def construct_algorithm(obs, env, cfg, device):
        settings = {name: value for name, value in cfg["actor"].items() if name != "class_name"}
        model = MLPModel(obs, cfg["obs_groups"], "actor", env.num_actions, **settings).to(device)
        return HillClimb(model, cfg["algorithm"]["step_size"], cfg["num_steps_per_env"], cfg["seed"])

    def _weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()]).clone()

    def _set_weights(self, weights: torch.Tensor) -> None:
        torch.nn.utils.vector_to_parameters(weights, self.model.parameters())

    def act(self, obs):
        return self.model(obs, stochastic_output=True)

    def process_env_step(self, obs, rewards, dones, extras):
        self._rewards = self._rewards + rewards.mean()

    def compute_returns(self, obs):
        pass

    def train_mode(self):
        self.model.train()

    def eval_mode(self):
        self.model.eval()

    def broadcast_parameters(self):
        pass

    def learn(self):
        reward = float(self._rewards)
        if reward >= self._climb["best"]:
            self._climb = {"best": reward, "weights": self._weights()}
            self._log.add("climb", {"iteration": self.clock.iterations + 1, "reward": reward})
        step = torch.randn(len(self._climb["weights"]), generator=self._generator)
        self._set_weights(self._climb["weights"] + self._step_size * step)
        self._rewards = torch.zeros(())
        self.clock.iterations += 1
        self.clock.steps += self._num_steps
        return {"climb": -self._climb["best"]}

    def policy(self, member=0):
        return self.model

    def parts(self):
        return {"clock": Part(self.clock), "climb": Part(self)}

    def state_dict(self):
        return {**self._climb, "generator": self._generator.get_state()}

    def load_state_dict(self, state):
        self._climb = {name: state[name] for name in ("best", "weights")}
        self._generator.set_state(state["generator"])

    def save(self):
        return {"actor_state_dict": self.model.state_dict(), "parts": part_states(self.parts())}

    def load(self, loaded_dict, load_cfg, strict):
        self.model.load_state_dict(loaded_dict["actor_state_dict"], strict=strict)
        if load_cfg is None:
            load_parts(self.parts(), loaded_dict["parts"])
        return True

    def scalars(self):
        return {"Climb/best": self._climb["best"]}

    def records(self):
        return self._log.take()


# --- and what then works


@pytest.fixture
def climber(tmp_path, monkeypatch):
    """Add the row and the preset."""
    path = f"{__name__}:HillClimb"
    row = registry.Row(HillClimbOptions, lambda *_: None, lambda *_: 1, dict)
    monkeypatch.setitem(registry.ALGORITHMS, path, row)
    folder = tmp_path / "agents"
    shutil.copytree(presets.AGENTS_DIR, folder)
    (folder / "climb.yaml").write_text(f"algorithm:\n  class_name: {path}\n  step_size: 0.05\n")
    monkeypatch.setattr(presets, "AGENTS_DIR", folder)
    monkeypatch.setattr(names, "AGENTS_DIR", folder)
    names.agent_names.cache_clear()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    names.agent_names.cache_clear()


def options(**more: Any) -> argparse.Namespace:
    names = ("profile", "experiment", "device", "viz", "logger", "log_project_name", "checkpoint", "experiment_name")
    common = dict.fromkeys((*names, "run_name", "max_iterations", "seed", "agent", "output", "physics"), None)
    flags = {"resume": False, "auto_resume": False, "verbose": True, "num_envs": 64, "task": TASK}
    return argparse.Namespace(**{**common, **flags, **more})


def trained(run_name: str, iterations: int, **more: Any) -> Path:
    assert train(options(agent="climb", seed=2, run_name=run_name, max_iterations=iterations, **more), [
        "agent.save_interval=4"
    ], ROOT / "config") == 0  # fmt: skip
    return next(Path("logs/rsl_rl/diag_smooth").glob(f"*_{run_name}"))


def test_it_trains_resumes_evaluates_plays_and_reports(climber, capsys):
    whole = trained("whole", 16)
    trained("broken", 9)
    broken = trained("broken", 16, resume=True)
    contents = [torch.load(run / "model_15.pt", weights_only=False) for run in (whole, broken)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    assert (whole / "climb.jsonl").read_text() == (broken / "climb.jsonl").read_text() != ""
    curve = (whole / "curves.csv").read_text().splitlines()
    best = [float(row.split(",")[curve[0].split(",").index("Climb/best")]) for row in curve[1:]]
    assert len(best) == 16 and best == sorted(best), "it never goes down"

    assert play(options(checkpoint=str(whole), members="master", episodes=1, video=False, export=True, train_env_cfg=False), [], ROOT / "config") == 0  # fmt: skip  # noqa: E501
    assert (whole / "exported/policy.pt").exists()
    assert evaluate(options(checkpoint=[str(whole)], members="all", episodes=1, seeds="1", train_env_cfg=False), [], ROOT / "config") == 0  # fmt: skip  # noqa: E501
    assert json.loads((whole / "evaluation.json").read_text())["evaluations"]
    assert report(argparse.Namespace(runs=[whole], watch=False, output=None, pdf=False)) == 0
    assert (whole / "report.html").exists()
