"""Processes that wait for each other say so, and do not wait for ever."""

import threading
import time

import pytest
import torch

from epo_lab.base.errors import LostProcessError, UserError
from epo_lab.base.processes import _meet, time_out

pytestmark = pytest.mark.unit


def test_nobody_goes_on_before_all_have_come():
    store, passed = torch.distributed.HashStore(), []

    def come(own, after):
        time.sleep(after)
        _meet(store, own, 3, "roll-out 1", lambda: False, 30.0, 60.0)
        passed.append(time.monotonic())

    begin = time.monotonic()
    threads = [threading.Thread(target=come, args=(own, 0.3 * own)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 3 and min(passed) - begin >= 0.6
    assert store.num_keys() == 0, "a long run leaves no notes behind"


def test_a_point_of_the_same_name_is_waited_for_again():
    store, passed = torch.distributed.HashStore(), []

    def come(own, after):
        for _ in range(3):
            time.sleep(after)
            _meet(store, own, 2, "roll-out 1", lambda: False, 30.0, 60.0)
            passed.append(time.monotonic())
            together.wait()

    together = threading.Barrier(2)
    begin = time.monotonic()
    threads = [threading.Thread(target=come, args=(own, 0.2 * own)) for own in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 6 and min(passed[4:]) - begin >= 0.6 and store.num_keys() == 0


def test_who_is_missing_is_named_and_then_given_up(capsys):
    store = torch.distributed.HashStore()
    store.set("roll-out 7/2", "")
    store.add("roll-out 7", 1)
    with pytest.raises(LostProcessError, match=r"rank 0 waited 1 s for ranks 1, 3 \(roll-out 7\) and gives up"):
        _meet(store, 0, 4, "roll-out 7", lambda: False, 0.3, 1.0)
    said = capsys.readouterr().err
    assert said.count("has waited") == 1 and "rank 0 has waited" in said and "ranks 1, 3" in said


def test_the_time_out_is_a_setting(monkeypatch):
    assert time_out() == 600.0
    monkeypatch.setenv("EPO_TIMEOUT", "45")
    assert time_out() == 45.0
    for wrong in ("soon", "0", "nan", "-3"):
        monkeypatch.setenv("EPO_TIMEOUT", wrong)
        with pytest.raises(UserError, match="EPO_TIMEOUT takes seconds"):
            time_out()
