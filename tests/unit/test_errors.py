import signal
from pathlib import Path

import pytest

from epo_lab.base.errors import UserError, did_you_mean, exit_on_user_error
from epo_lab.runner.signals import StopSignal

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


def test_a_second_ctrl_c_does_not_wait_for_the_iteration(capsys):
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.received is signal.SIGINT and "once more to stop at once" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
