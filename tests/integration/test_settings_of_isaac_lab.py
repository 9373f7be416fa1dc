"""Settings of Isaac Lab's tasks are checked as those of the diagnostics, before a simulation starts."""

import argparse

import pytest
import yaml

from epo_lab.base.errors import UserError
from epo_lab.commands.backends.base import make_backend
from epo_lab.commands.tasks import find_task
from support.command import ROOT

pytestmark = pytest.mark.integration


def resolved(agent, *rest):
    names = ("profile", "experiment", "num_envs", "device", "viz", "logger", "experiment_name", "run_name", "seed")
    args = argparse.Namespace(agent=agent, max_iterations=None, **dict.fromkeys(names))
    backend = make_backend(find_task("Epo-Anymal-Flat-v0"))
    backend.resolve(args, list(rest), ROOT / "config")
    backend.check_training()
    return backend


@pytest.mark.parametrize("agent", ["ppo", "epo", "pbt", "sac", "es"])
def test_every_agents_own_settings_are_fine(agent, tmp_path):
    backend = resolved(agent)
    backend.dump(tmp_path)
    assert yaml.safe_load((tmp_path / "params/agent.yaml").read_text().replace("!!python/", "#"))["save_interval"] > 0


@pytest.mark.parametrize(
    "setting",
    [
        "schedule=adaptve",
        "use_clipped_value_loss=no",
        "num_learning_epochs=0",
        "gamma=2",
        "lam=-1",
        "clip_param=-1",
        "max_grad_norm=nan",
        "max_skipped_updates=nan",
        "entropy_coef=inf",
        "desired_kl=0",
    ],
)
def test_what_rsl_rl_takes_silently_is_refused(setting):
    with pytest.raises(UserError, match=setting.partition("=")[0]):
        resolved("epo", f"agent.algorithm.{setting}")


@pytest.mark.parametrize("setting", ["guard_bound=0", "save_interval=0", "actor.hidden_dims=[0]", "seed=-1"])
def test_settings_of_runner_and_networks_are_ranged(setting):
    with pytest.raises(UserError, match=setting.partition("=")[0].rpartition(".")[2]):
        resolved("epo", f"agent.{setting}")
