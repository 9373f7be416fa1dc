"""A signal stops a run and harms nothing."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

LEARN_UNDER_FIRE = """
import os, signal, threading, time
import torch
from epo_lab.runner.signals import StopSignal

torch.set_num_threads(1)
network, sequences = torch.nn.LSTM(228, 128), torch.rand(16, 96, 228)
over = threading.Event()

def fire():
    while not over.wait(0.001):
        os.kill(os.getpid(), signal.SIGTERM)

with StopSignal() as stop:
    shooter = threading.Thread(target=fire)
    shooter.start()
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        network(sequences)[0].sum().backward()
    over.set()
    shooter.join()
assert stop.received is signal.SIGTERM
print("survived")
"""


def test_signals_do_not_damage_memory():
    """PyTorch lets the stack pointer point to the heap now and then; hundreds of signals find the moment."""
    command = [sys.executable, "-c", LEARN_UNDER_FIRE]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0 and result.stdout == "survived\n", result.stderr[-500:]
