"""The code of docs/extending.md does what the page says."""

import json

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.commands.tasks import find_task
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.population.crossover import crossover
from epo_lab.population.genetics import EvolutionOptions
from epo_lab.population.lineage import replay
from epo_lab.runner.runner import EpoRunner
from support.snippets import write_snippets

pytestmark = pytest.mark.integration

OPERATOR = "my_operators:blend"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    files = write_snippets("docs/extending.md", folder)
    assert [path.name for path in files] == ["my_problem.py", "my_operators.py", "my_task.py"]
    for path in files:
        assert sum(bool(line.strip()) for line in path.read_text().splitlines()) <= 30, path.name
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


def test_own_problem_and_operator_train_together(folder, tmp_path):
    spec = find_task("my_problem:My-Reach-v0")
    settings = agent_settings(spec.id, "epo")["agent"]
    settings["algorithm"]["num_agents"] = 8
    settings["algorithm"]["evolution"] |= {"crossover": OPERATOR, "trigger": "interval", "mutation": "none"}
    torch.manual_seed(0)
    env = __import__("my_problem").ReachEnv(128)
    runner = EpoRunner(env, settings, log_dir=str(tmp_path))
    runner.learn(25)
    assert runner.alg.scalars()["Master/fitness"] > 0.3, "a random policy ends about 0.8 from the origin"
    records = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    assert records[0]["cfg"]["crossover"] == OPERATOR
    for child, again in zip(records[0]["children"], replay(records[0]), strict=True):
        assert child["gene"] == again["gene"], "a generation with an own operator can be replayed"


def test_operator_stays_within_the_widened_interval(folder):
    genes = torch.tensor([[9.0, 9.0], [0.0, 1.0], [1.0, 3.0]])
    draw = torch.Generator().manual_seed(0)
    children = torch.stack([crossover(genes, torch.ones(3), (1, 2), OPERATOR, draw) for _ in range(2000)])
    torch.testing.assert_close(children.amin(0), torch.tensor([-0.5, 0.0]), atol=0.02, rtol=0.0)
    torch.testing.assert_close(children.amax(0), torch.tensor([1.5, 4.0]), atol=0.02, rtol=0.0)


def test_what_cannot_be_loaded_is_said_in_one_line(folder):
    with pytest.raises(UserError, match="crossover 'nowhere:f' cannot be loaded"):
        EvolutionOptions(crossover="nowhere:f").check(8)
    with pytest.raises(UserError, match="crossover 'my_operators:blent' cannot be loaded"):
        EvolutionOptions(crossover="my_operators:blent").check(8)
    with pytest.raises(UserError, match="cannot import 'nowhere'"):
        find_task("nowhere:My-Task-v0")
