"""What is misspelt is said before torch or Isaac Lab is loaded, and the tables that make it possible are right."""

import subprocess
import sys
import time

import pytest

from epo_lab.cli import completion, early
from epo_lab.cli import list as list_command
from epo_lab.cli.main import COMMANDS
from epo_lab.cli.main import main as epo_lab
from epo_lab.cli.train import make_parser
from epo_lab.configs import names
from support.command import ROOT

pytestmark = pytest.mark.unit

HEAVY = ("torch", "isaaclab", "rsl_rl", "gymnasium", "numpy", "hydra", "yaml")


def answer(*words, name="train"):
    """Return code, error, processor time and heavy modules of a script that must not get far."""
    code = (
        "import runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        f"finally: print('HEAVY', *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, str(ROOT / f"scripts/{name}.py"), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = result.stderr.splitlines()
    return result, [line for line in lines if not line.startswith("HEAVY")], lines


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--task", "Epo-Anymal-Falt-v0"), "unknown task 'Epo-Anymal-Falt-v0'. Did you mean Epo-Anymal-Flat-v0"),
        (("--task", "Isaac-Cartpol"), "Did you mean Isaac-Cartpole"),
        (("--task", "Isaac-Cartpole", "--agent", "epoo"), "Isaac-Cartpole has no agent 'epoo'"),
        (("--task", "Isaac-Pendulum-MARL-Direct"), "has no rsl_rl agent"),
        (("--task", "Epo-Anymal-Flat-v0", "--agnet", "epo"), "unknown argument '--agnet'"),
        (("--task", "Epo-Anymal-Flat-v0", "agnt.x=1"), "unknown setting 'agnt.x'"),
        (("--task", "Epo-Anymal-Flat-v0", "--profile", "cpuu"), "unknown profile 'cpuu'"),
    ],
)
def test_misspelt_words_are_answered_without_anything_heavy(words, says):
    result, error, everything = answer(*words)
    assert result.returncode == 2
    assert len(error) == 1 and error[0].startswith("train: ") and says in error[0], error
    assert everything[-1] == "HEAVY"


def test_a_misspelt_task_takes_less_than_a_second_of_processor_time():
    import resource

    def children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    for words, most in ((("--task", "Epo-Anymal-Falt-v0"), 1.0), (("--help",), 0.6)):
        begin, clock = children(), time.monotonic()
        subprocess.run([sys.executable, str(ROOT / "scripts/train.py"), *words], capture_output=True, check=False)
        # processor time: other work on the machine does not count
        assert children() - begin < most, f"{words}: {time.monotonic() - clock:.1f} s on the clock"


def test_launcher_options_and_their_values_pass():
    early.check_options(make_parser(), ["--livestream", "1", "--xr", "--kit_args=--x", "physics=ovphysx", "env.x=1"])
    with pytest.raises(Exception, match="unknown argument '1'"):
        early.check_options(make_parser(), ["--xr", "1"])


def test_tasks_of_others_are_left_to_the_registry(monkeypatch):
    assert early.find_row("my_module:My-Task-v0") is None
    assert early.find_row("EnvPool/HalfCheetah-v4") is None
    monkeypatch.setattr(early, "table_is_complete", lambda: False)
    assert early.find_row("Somebodys-Task-v0") is None
    assert early.find_row("Epo-Kuka-OneArm-Regrasp-v0").agents.count("epo_mlp") == 1


def test_list_shows_tasks_agents_metrics_and_sizes(capsys):
    assert list_command.main([]) == 0
    text = capsys.readouterr().out
    assert "Isaac-Cartpole" not in text
    row = next(line for line in text.splitlines() if "Epo-Anymal-Flat-v0" in line)
    assert [cell.strip() for cell in row.strip("|").split("|")][:4] == [
        "Epo-Anymal-Flat-v0", "ppo", "episode_return", "512/4096/24576"
    ]  # fmt: skip
    for agent in names.agent_names():
        assert f"| {agent} " in text
    assert max(map(len, text.splitlines())) < 130, "a line of a terminal"
    assert list_command.main(["velocity", "--all"]) == 0
    assert "Isaac-Velocity-Flat-H1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        list_command.main(["nothing-like-this"])


def test_a_list_can_be_read_by_a_program_that_has_seen_enough():
    program = f"{sys.executable} {ROOT}/scripts/list.py --all | head -1"
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("| task") and result.stderr == ""


def test_commands_are_dispatched_and_misspelt_ones_refused(capsys):
    assert epo_lab(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in COMMANDS)
    assert epo_lab(["trian"]) == 2
    error = capsys.readouterr().err
    assert error == "epo-lab: unknown command 'trian'. Did you mean train?\n"
    assert epo_lab([]) == 2


def test_bash_completes_options_tasks_and_agents():
    program = (
        completion.bash()
        + """
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _epo_lab; echo "${COMPREPLY[*]}"; }
ask epo-lab tr
ask epo-lab train --max
ask ./isaaclab.sh -p scripts/train.py --task Epo-Anymal
ask epo-lab train --agent sapg_
"""
    )
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        "train", "--max_iterations", "Epo-Anymal-Flat-v0", "sapg_all sapg_symmetric"
    ]  # fmt: skip


def test_without_the_packages_the_launcher_is_named(tmp_path):
    command = [sys.executable, "-I", "-S", str(ROOT / "scripts/train.py"), "--task", "Epo-Anymal-Flat-v0"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.endswith("has no module 'epo_lab': start it with ./isaaclab.sh -p scripts/train.py\n")
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("train: ")
