from pathlib import Path

import pytest

from epo_lab.base.errors import UserError
from epo_lab.configs.profiles import profile_names, profile_overrides

pytestmark = pytest.mark.unit

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def config(tmp_path):
    files = {
        "base.yaml": "env: {}\nagent: {}\n",
        "profile/cpu.yaml": "# @package _global_\nenv: {scene: {num_envs: 8}}\nagent: {actor: {hidden_dims: [4, 2]}}\n",
        "task/T-v0/cpu.yaml": "# @package _global_\nenv: {scene: {num_envs: 16}}\n",
        "experiment/best.yaml": "# @package _global_\nagent: {seed: 7}\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_profile_becomes_overrides(config):
    assert profile_overrides(config, "cpu", "Other-v0") == ["env.scene.num_envs=8", "agent.actor.hidden_dims=[4, 2]"]


def test_task_wins_over_profile_and_experiment_adds(config):
    overrides = profile_overrides(config, "cpu", "T-v0", "best")
    assert overrides == ["env.scene.num_envs=16", "agent.actor.hidden_dims=[4, 2]", "agent.seed=7"]


def test_unknown_names_are_refused(config):
    with pytest.raises(UserError, match=r"unknown profile 'cpuu'\. Did you mean cpu\?"):
        profile_overrides(config, "cpuu", "T-v0")
    with pytest.raises(UserError, match="unknown experiment"):
        profile_overrides(config, "cpu", "T-v0", "nothing")


def test_the_repository_has_the_three_profiles():
    assert {"cpu", "gpu", "paper"} <= set(profile_names(CONFIG))
    for profile in profile_names(CONFIG):
        overrides = profile_overrides(CONFIG, profile, "Epo-Anymal-Flat-v0")
        assert any(token.startswith("env.scene.num_envs=") for token in overrides)


def test_every_experiment_file_composes():
    for path in (CONFIG / "experiment").glob("*.yaml"):
        assert profile_overrides(CONFIG, "cpu", "Epo-Anymal-Flat-v0", path.stem)
