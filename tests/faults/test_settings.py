"""Generated settings and command lines: trained with, or refused in one line before anything starts."""

import random
import shutil
import sys
from pathlib import Path

import pytest

from epo_lab.cli.train import main
from epo_lab.commands.backends.base import make_backend
from epo_lab.commands.tasks import find_task
from epo_lab.configs.names import agent_names

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TASKS = ("Epo-Diag-Deceptive-v0", "Epo-Diag-Memory-v0", "EnvPool/Hopper-v4", "EnvPool/CheetahRun-v1")
NUMBERS = ["nan", "inf", "-inf", "-1", "0", "1", "2", "3", "0.5", "-0.5", "1.5", "1e30", "-1e30", "1e-30", "1e999"]
NUMBERS += ["1000000000000", "1" + "0" * 400]
WORDS = [
    "true",
    "false",
    "null",
    "no",
    "adaptve",
    "word",
    "''",
    "é",
    "[]",
    "[1,2]",
    "[0]",
    "[a]",
    "[-1]",
    "{}",
    "{a:1}",
]
WORDS += ["[1000000000000]", "a:b", "epo_lab.algorithms:EPO", "epo_lab.nothing:X", "[[1,2],[3,4]]", "x=y", "[", "${x}"]
OPTIONS = {
    "--seed": [*NUMBERS, "x", ""],
    "--num_envs": [*NUMBERS, "x", ""],
    "--max_iterations": ["nan", "-1", "0", "1.5", "1e3", "1" + "0" * 400, "x"],
    "--run_name": ["../x", "/x", "a/b", "x" * 300, "é" * 120, "a\nb", "..", ".", "-x", " ", "$(x)", "a b", "\x1b[1m"],
    "--experiment_name": ["../../x", "/tmp/x", "x" * 300, "a//b", "..", ".", "a\nb", "a/../../b", "", "a b"],
    "--device": ["cuda:99", "gpu", "cpu:7", "", "meta", "xpu"],
    "--agent": ["", "epoo", "PPO", "../epo"],
    "--profile": ["", "huge", "paper"],
    "--checkpoint": ["", "nothing.pt", "latest", "best", "/", "/dev/null", "\x1b", "x" * 5000],
    "--logger": ["wand", ""],
    "--wandb_tags": ["a,b", ""],
    "--experiment": ["x", "../x"],
    "--port": ["0", "65536", "x"],
}


def leaves(settings, path):
    for name, value in settings.items():
        yield f"{path}.{name}"
        if isinstance(value, dict):
            yield from leaves(value, f"{path}.{name}")


def generate(draw, known):
    """Return a command line with one to three things that may be wrong."""
    task, agent = draw.choice(TASKS), draw.choice(agent_names())
    words = ["--task", task, "--agent", agent, "--max_iterations", "1"]
    for _ in range(draw.choice((1, 1, 2, 3))):
        if draw.random() < 0.2:
            option = draw.choice(list(OPTIONS))
            words += [f"{option}={draw.choice(OPTIONS[option])}"]
        else:
            words.append(f"{draw.choice(known[task, agent])}={draw.choice(draw.choice((NUMBERS, WORDS)))}")
    return words


@pytest.fixture(scope="module")
def known():
    """Every setting of every agent, by task and agent."""
    found = {}
    for task in TASKS:
        for agent in agent_names():
            sections = make_backend(find_task(task)).sections(agent, play_mode=False)
            found[task, agent] = [path for section in ("env", "agent") for path in leaves(sections[section], section)]
    return found


@pytest.mark.parametrize("part", range(10))
def test_a_hundred_generated_command_lines_are_obeyed_or_refused_in_a_line(known, part, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    draw, problems = random.Random(part), []
    for _ in range(100):
        words = generate(draw, known)
        try:
            code = main(words)
        except SystemExit as ending:
            code = ending.code
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"
        said = capfd.readouterr().err.splitlines()
        refused = code == 2 and len(said) == 1 and said[0].startswith("train: ") and not list(Path().iterdir())
        diverged = code == 1 and len(said) == 1 and "finite" in said[0]
        if not (code == 0 or refused or diverged):
            problems.append(
                f"{' '.join(words)[:300]}\n  -> {str(code)[:200]}; {said[-1:]}; left {list(Path().rglob('*'))[:3]}"
            )
        shutil.rmtree("logs", ignore_errors=True)
    assert not problems, "\n".join([f"{len(problems)} of 100", *problems])
