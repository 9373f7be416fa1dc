import re
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from epo_lab.base.errors import UserError
from epo_lab.commands.backends.base import WANDB, check_login
from epo_lab.configs.overrides import check_paths, split_overrides
from epo_lab.runner.options import check_network

pytestmark = pytest.mark.unit


def test_presets_and_paths_are_told_apart():
    presets, paths = split_overrides(["physics=ovphysx", "env.sim.dt=0.01", "presets=a,b", "agent.seed=1"])
    assert presets == ["physics=ovphysx", "presets=a,b"]
    assert paths == ["env.sim.dt=0.01", "agent.seed=1"]


@pytest.mark.parametrize("argument", ["--num_env=4", "word", "sim.dt=0.01", "env=3"])
def test_anything_else_is_refused(argument):
    with pytest.raises(UserError, match="unknown"):
        split_overrides([argument])


def test_misspelt_setting_is_found_at_any_depth():
    env = SimpleNamespace(sim=SimpleNamespace(dt=0.01), rewards={"torque": SimpleNamespace(weight=1.0)})
    check_paths(["env.sim.dt=1", "env.rewards.torque.weight=2"], env, None)
    with pytest.raises(UserError, match=r"env\.sim has no 'dtt'\. Did you mean dt\?"):
        check_paths(["env.sim.dtt=1"], env, None)
    with pytest.raises(UserError, match=r"env\.rewards has no 'torqe'\. Did you mean torque\?"):
        check_paths(["env.rewards.torqe.weight=2"], env, None)


@dataclass
class Task:
    """As Isaac Lab's configclasses: types are declared, values may be None."""

    num_objects: int | None = None
    step: float = 0.01
    name: str = "cube"
    flat: bool = True
    range: tuple[float, float] = (0.0, 1.0)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("env.num_objects=many", "env.num_objects takes a whole number"),
        ("env.num_objects=2.5", "env.num_objects takes a whole number"),
        ("env.step=fast", "env.step takes a number"),
        ("env.flat=maybe", "env.flat takes true or false"),
        ("agent.gamma=[0.9]", "agent.gamma takes a number"),
        ("agent.gamma=[", "cannot read"),
    ],
)
def test_a_value_of_another_kind_is_refused(token, message):
    with pytest.raises(UserError, match=re.escape(message)):
        check_paths([token], Task(), {"gamma": 0.99})


def test_values_of_the_right_kind_pass():
    fine = ["env.num_objects=3", "env.num_objects=null", "env.num_objects=cpu", "env.step=1", "env.name=5"]
    check_paths([*fine, "env.range=[0,2]", "env.flat=false", "agent.gamma=1", "agent.steps=0.5"], Task(), AGENT)


AGENT = {"gamma": 0.99, "steps": 1, "actor": {"activation": "elu"}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "rleu"}, "agent.actor.activation: Invalid activation function 'rleu'. Valid activations are:"),
        ({"hidden_dims": [64, 0]}, "agent.actor.hidden_dims must be at least 1, not 0"),
        ({"rnn_type": "lstmm"}, "agent.actor.rnn_type must be one of lstm, gru, not lstmm"),
    ],
)
def test_a_network_that_cannot_be_built_is_refused(settings, message):
    with pytest.raises(UserError, match=re.escape(message)):
        check_network(settings, "agent.actor")
    check_network({"activation": "relu", "hidden_dims": (64, 64), "rnn_type": "gru"}, "agent.actor")


def test_wandb_without_a_login_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr("wandb.login", lambda prompt: False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    logger = {"class_name": WANDB, "project_name": "p"}
    with pytest.raises(UserError, match="W&B has no login: run 'wandb login', set WANDB_API_KEY, or add --wandb_mode"):
        check_login(logger)
    check_login(logger | {"mode": "offline"})
    check_login("tensorboard")
