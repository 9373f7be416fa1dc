"""The diagnostics that resemble the big tasks: every agent trains on them as they come."""

import pytest

from epo_lab.cli.evaluate import main as evaluate
from epo_lab.cli.train import main as train
from epo_lab.configs.names import agent_names

pytestmark = pytest.mark.integration

TASKS = ("Epo-Diag-PickPlace-v0", "Epo-Diag-KeyDoor-v0", "Epo-Diag-Jumper-v0")
QUICK = ("ppo", "epo", "sac")


def train_and_score(task, agent, capsys):
    assert train(["--task", task, "--agent", agent, "--max_iterations", "2"]) == 0
    assert evaluate(["--task", task, "--agent", agent, "--num_envs", "64"]) == 0
    assert "score" in capsys.readouterr().out


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("agent", QUICK)
def test_a_few_agents_train_and_are_scored(task, agent, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train_and_score(task, agent, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("agent", sorted(set(agent_names()) - set(QUICK)))
def test_all_agents_train_and_are_scored(task, agent, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train_and_score(task, agent, capsys)
