"""Sizes of plain settings, experiments, and what a size says aloud."""

import pytest

from epo_lab.base.errors import UserError
from epo_lab.configs.experiments import experiment_overrides
from epo_lab.configs.sizes import at_size, changed_beyond_size, check_size
from support.command import ROOT

pytestmark = pytest.mark.unit


def test_what_is_not_named_is_as_on_a_gpu():
    settings = {"num_agents": {"gpu": 8, "paper": 64}, "evolution": {"floor": {"gpu": 1.0, "cpu": None}, "gamma": 0.3}}
    assert at_size(settings, "cpu") == {"num_agents": 8, "evolution": {"floor": None, "gamma": 0.3}}
    assert at_size(settings, "paper") == {"num_agents": 64, "evolution": {"floor": 1.0, "gamma": 0.3}}


def test_changes_of_the_learning_rule_are_said_aloud():
    plain = {"max_iterations": 5, "algorithm": {"clip_param": 0.1, "gamma": 0.99}, "obs_clip": 5.0}
    sized = {"max_iterations": 9, "algorithm": {"clip_param": 0.2, "gamma": 0.99}, "obs_clip": None}
    changed = list(changed_beyond_size(plain, sized, "agent"))
    assert changed == ["agent.algorithm.clip_param=0.2", "agent.obs_clip=null"]


def test_an_experiment_becomes_overrides(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "best.yaml").write_text("env: {a: {b: 1}}\nagent: {seed: null, dims: [4, 2]}\n")
    assert experiment_overrides(tmp_path, "best") == ["env.a.b=1", "agent.seed=null", "agent.dims=[4, 2]"]
    assert experiment_overrides(tmp_path, None) == []


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(UserError, match="unknown profile 'cpuu': there are cpu, gpu, paper"):
        check_size("cpuu")
    with pytest.raises(UserError, match="unknown experiment"):
        experiment_overrides(tmp_path, "nothing")


def test_every_experiment_of_the_repository_reads():
    for path in (ROOT / "config" / "experiment").glob("*.yaml"):
        assert experiment_overrides(ROOT / "config", path.stem)
