import ast
import re
import signal
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from epo_lab.algorithms.on_policy.options import PpoOptions
from epo_lab.algorithms.registry import ALGORITHMS
from epo_lab.base.errors import UserError, did_you_mean, exit_on_user_error
from epo_lab.base.options import ROOT
from epo_lab.cli.main import COMMANDS
from epo_lab.runner.signals import StopSignal
from support.command import ROOT as CHECKOUT

pytestmark = pytest.mark.unit


def test_user_error_is_one_line_and_exit_code_two(capsys):
    with pytest.raises(SystemExit) as exit_info, exit_on_user_error("train"):
        raise UserError("first line\n   second line")
    assert exit_info.value.code == 2
    assert capsys.readouterr().err == "train: first line second line\n"


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError), exit_on_user_error("train"):
        raise ZeroDivisionError


def test_nearest_names_are_suggested_whatever_their_case():
    tasks = ["Epo-Anymal-Flat-v0", "Epo-A1-Flat-v0", "Isaac-Cartpole"]
    assert did_you_mean("epo-anymal-flat", tasks) == " Did you mean Epo-Anymal-Flat-v0, Epo-A1-Flat-v0?"
    assert did_you_mean("zzz", tasks) == ""


def test_ctrl_c_is_one_line_and_exit_code_130(capsys):
    with pytest.raises(SystemExit) as exit_info, exit_on_user_error("train"):
        raise KeyboardInterrupt
    assert exit_info.value.code == 130
    assert capsys.readouterr().err == "\ntrain: stopped at once; what was saved before stays\n"


def test_a_full_disk_is_told_from_other_errors_of_files(capsys):
    with pytest.raises(SystemExit) as exit_info, exit_on_user_error("train"), Path("/dev/full").open("w") as file:
        file.write("x")
    assert exit_info.value.code == 2
    assert "no space left on the disk" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError), exit_on_user_error("train"):
        Path("/no/such/file").read_text()


def test_what_breaks_after_a_ctrl_c_is_the_ctrl_c(capsys):
    with pytest.raises(SystemExit) as exit_info, exit_on_user_error("train"):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RecursionError("an import was cut off") from None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert exit_info.value.code == 130 and "stopped at once" in capsys.readouterr().err


def said_in_errors(folder):
    """Yield file and text of every error that a user sees; what is filled in when it is raised becomes a blank."""
    for path in sorted(folder.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("UserError", "NonFiniteEnvError"):
                parts = [part for text in call.args for part in getattr(text, "values", [text])]
                roots = [getattr(getattr(part, "value", None), "id", "") == "ROOT" for part in parts]
                words = [
                    ROOT if is_root else str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else " "
                    for part, is_root in zip(parts, roots, strict=True)
                ]
                yield path, "".join(words)


def option_names(kind, prefix=f"{ROOT}."):
    for field in fields(kind):
        yield prefix + field.name
        if is_dataclass(hint := get_type_hints(kind)[field.name]):
            yield from option_names(hint, f"{prefix}{field.name}.")


def test_errors_name_options_that_exist():
    own = {name for row in ALGORITHMS.values() for name in option_names(row.options)} | set(option_names(PpoOptions))
    own |= {f"{ROOT}.{name}" for name in ("class_name", "rnd_cfg", "symmetry_cfg")}
    parsers = [import_module(f"epo_lab.cli.{name}") for name in COMMANDS]
    flags = {
        option
        for module in parsers
        if hasattr(module, "make_parser")
        for action in module.make_parser()._actions
        for option in action.option_strings
    }
    source = "\n".join(path.read_text() for path in (CHECKOUT / "source").rglob("*.py"))
    checked = 0
    for path, text in said_in_errors(CHECKOUT / "source"):
        for name in re.findall(r"(?<![\w.-])(?:agent|env)(?:\.\w+)+|(?<![\w-])--[a-z][\w-]*[a-z]\b", text):
            checked += 1
            if name.startswith(ROOT):
                assert name == ROOT or name in own, f"{path.name}: {name}"
            elif name.startswith("--"):
                assert name in flags, f"{path.name}: {name}"
            elif name not in ("env.x", "agent.y", "agent.yaml"):
                option = name.rpartition(".")[2]
                assert re.search(rf"^    {option}\b[^(]*[:=]", source, re.MULTILINE), f"{path.name}: {name}"
    assert checked > 25


def test_a_second_ctrl_c_does_not_wait_for_the_iteration(capsys):
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.received is signal.SIGINT and "once more to stop at once" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
