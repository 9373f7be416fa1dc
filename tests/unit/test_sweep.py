"""Settings with several values."""

import os
from pathlib import Path

import pytest

from epo_lab.base.errors import UserError
from epo_lab.commands.compare import Job, progress
from epo_lab.commands.quiet import into_file
from epo_lab.configs.sweep import expand

pytestmark = pytest.mark.unit


def test_without_a_setting_there_is_one_nameless_point():
    arguments = ["presets=a,b", "--livestream", "1"]
    assert expand(arguments) == [("", arguments)]


def test_a_setting_with_one_value_has_a_name_too():
    name, arguments = expand(["agent.actor.hidden_dims=[64,64]", "presets=a,b", "env.x=0.1"])[0]
    assert name == "hidden_dims=[64,64],x=0.1", "or it would be taken for the run without it"
    assert arguments == ["presets=a,b", "agent.actor.hidden_dims=[64,64]", "env.x=0.1"]


def test_all_combinations_keep_what_is_fixed():
    points = expand(["agent.a.x=1,2", "env.y=3", "agent.z=choice(a,b)"])
    assert points == [
        ("x=1,y=3,z=a", ["agent.a.x=1", "env.y=3", "agent.z=a"]),
        ("x=1,y=3,z=b", ["agent.a.x=1", "env.y=3", "agent.z=b"]),
        ("x=2,y=3,z=a", ["agent.a.x=2", "env.y=3", "agent.z=a"]),
        ("x=2,y=3,z=b", ["agent.a.x=2", "env.y=3", "agent.z=b"]),
    ]


def test_lists_and_ranges_are_values_too():
    assert [name for name, _ in expand(["agent.dims=[8,8],[16]"])] == ["dims=[8,8]", "dims=[16]"]
    assert [name for name, _ in expand(["env.n=range(2,8,3)"])] == ["n=2", "n=5"]


def test_settings_that_end_alike_keep_their_whole_names():
    assert expand(["env.a.x=1,2", "agent.a.x=3,4"])[0][0] == "env.a.x=1,agent.a.x=3"


@pytest.mark.parametrize("argument", ["agent.x=[1,2", "agent.x=interval(0,1)"])
def test_what_cannot_be_read_is_said(argument):
    with pytest.raises(UserError, match="cannot read"):
        expand([argument])


def job(task="Epo-Diag-Smooth-v0", **options):
    return Job(task, "epo", 3, None, None, "", (), Path(), tuple(options.items()))


def test_many_settings_make_no_endless_name():
    def name(last):
        point = ",".join(f"agent.algorithm.setting_{number}={last}" for number in range(9))
        return Job("Epo-Diag-Smooth-v0", "epo", 3, None, None, point, (), Path()).run_name

    assert len(name(1)) < 110 and name(1) != name(2) and name(1).endswith("-3")


def test_runs_of_a_task_from_a_module_are_found_by_its_id():
    mine = job("my_package.tasks:My-Task-v0")
    assert mine.task_id == "My-Task-v0" and mine.experiment == "compare/My-Task-v0"
    assert mine.arguments().task == "my_package.tasks:My-Task-v0", "training imports the module"


def test_options_reach_every_run():
    arguments = job(profile="paper", wandb_group="g").arguments(resume=False)
    assert (arguments.profile, arguments.wandb_group, arguments.device) == ("paper", "g", None)
    assert arguments.verbose and arguments.resume is False


def test_progress_is_the_last_that_the_log_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert progress(job()) == "", "nothing is known before the run says something"
    job().log.parent.mkdir(parents=True)
    job().log.write_text("Loading the task\n  1/40 (  2%) | steps/s 9\n 30/40 ( 75%) | steps/s 9\na warning\n")
    assert progress(job()) == "epo seed 3 30/40"


def test_what_native_code_prints_goes_into_the_file(tmp_path, capfd):
    with into_file(tmp_path / "deep" / "log.txt"):
        os.system("echo from another process")
        os.write(1, b"past Python's streams\n")
    print("afterwards")
    assert (tmp_path / "deep" / "log.txt").read_text() == "from another process\npast Python's streams\n"
    assert capfd.readouterr().out == "afterwards\n"
