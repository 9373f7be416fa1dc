"""How processes find each other; and that those who wait say so, and do not wait for ever."""

import subprocess
import sys
import threading
import time
from datetime import timedelta
from importlib import import_module

import pytest
import torch

from epo_lab.base.errors import LostProcessError, UserError
from epo_lab.base.processes import _beat, _meet, agree_on_name, own_device, time_out
from epo_lab.runner.runner import EpoRunner
from support.command import wait_for_end

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


def test_processes_that_are_started_again_share_a_name_that_none_had_before():
    store, names = torch.distributed.HashStore(), []

    def start(own, count, after=0.0):
        time.sleep(after)
        names.append(agree_on_name(store, own, count, 30.0))

    # the second start finds the notes of the first, and those of one that was killed before it was answered
    for attempt in range(2):
        store.set("hello/2", f"killed-{attempt}")
        threads = [threading.Thread(target=start, args=(own, 3, 0.2 * own)) for own in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(names[:3])) == len(set(names[3:])) == 1 and names[0] != names[3]
    with pytest.raises(LostProcessError, match=r"rank 0 waited 0 s for ranks \[1, 2, 3\] to start"):
        agree_on_name(store, 0, 4, 0.2)


def test_who_gives_no_sign_of_life_is_named_once_and_who_has_ended_is_not(capsys):
    store, ends = torch.distributed.HashStore(), [threading.Event() for _ in range(2)]
    threads = [threading.Thread(target=_beat, args=(store, own, 3, ends[own], 0.05, 0.4)) for own in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    ends[1].set()
    time.sleep(1.0)
    ends[0].set()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err == "[epo-lab] rank 1 has had no sign of life from rank 2 for 0 s\n"


def test_the_time_out_is_a_setting(monkeypatch):
    assert time_out() == 600.0
    monkeypatch.setenv("EPO_TIMEOUT", "45")
    assert time_out() == 45.0
    for wrong in ("soon", "0", "nan", "-3"):
        monkeypatch.setenv("EPO_TIMEOUT", wrong)
        with pytest.raises(UserError, match="EPO_TIMEOUT takes seconds"):
            time_out()


def test_a_process_ends_with_the_one_that_started_it():
    child = "import time; from epo_lab.base.processes import end_with_parent; end_with_parent()"
    child += "; print('set', flush=True); time.sleep(60)"
    code = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child!r}])"
    code += "; print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = int(parent.stdout.readline())
        assert parent.stdout.readline() == "set\n"
        parent.kill()
    wait_for_end([started], 10.0)


@pytest.mark.parametrize(("device", "own", "backend"), [("cuda:0", "cuda:3", "nccl"), ("cpu", "cpu", "gloo")])
def test_gpus_join_over_nccl_each_process_with_its_own_and_cpus_over_gloo(monkeypatch, device, own, backend):
    """What torch is asked for, seen without a GPU."""
    for name, value in {"RANK": "11", "LOCAL_RANK": "3", "WORLD_SIZE": "16", "EPO_TIMEOUT": "45"}.items():
        monkeypatch.setenv(name, value)
    asked = []
    monkeypatch.setattr(torch.cuda, "set_device", asked.append)
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *args, **more: asked.append((args, more)))
    # the module: in torch.distributed the function of that name hides it
    module = import_module("torch.distributed.rendezvous")
    monkeypatch.setattr(module, "rendezvous", lambda *_, **__: iter([(torch.distributed.HashStore(), 11, 16)]))
    monkeypatch.setattr("epo_lab.base.processes.agree_on_name", lambda *_: "name")
    runner = EpoRunner.__new__(EpoRunner)
    runner.device, runner.cfg = own_device(device), {}
    runner._configure_multi_gpu()
    group = {"rank": 11, "world_size": 16, "timeout": timedelta(seconds=45)}
    # the device comes first: NCCL takes the current one for whatever has none, such as objects
    assert isinstance(asked[-1][1].pop("store"), torch.distributed.PrefixStore)
    assert runner.device == own and asked == [*([3] if backend == "nccl" else []), ((backend,), group)]
    assert runner.cfg["multi_gpu"] == {"global_rank": 11, "local_rank": 3, "world_size": 16}
