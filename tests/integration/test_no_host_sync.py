"""Terms of ours never make the host wait for the device: what would wait on a GPU is counted here on a CPU."""

import sys
from collections import Counter
from pathlib import Path

import isaaclab
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import epo_tasks
from support.envs import make_env
from support.kuka import goal_of
from support.parkour import goals_of, make_parkour

pytestmark = pytest.mark.integration

OURS = str(Path(epo_tasks.__file__).parent)
ISAACLAB = str(Path(isaaclab.__file__).parent)
HELPERS = str(Path(isaaclab.__file__).parent / "utils")
READS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select")


class WaitCounter(TorchDispatchMode):
    """Counts operations of our own code that read from the device, or copy Python numbers to it.

    An operation belongs to the innermost function of ours or of Isaac Lab's; Isaac Lab's helpers belong to who calls
    them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if _waits(func.name().split(".")[0], args) and (place := _place()) is not None:
            self.found[f"{func} {place}"] += 1
        return func(*args, **(kwargs or {}))


def _waits(name: str, args: tuple) -> bool:
    if name in READS:
        return True
    if name == "aten::lift_fresh":
        # a list becomes a tensor
        return args[0].ndim > 0
    if name in ("aten::index", "aten::index_put", "aten::index_put_"):
        by_mask = any(index is not None and index.dtype == torch.bool for index in args[1])
        # a number is made a tensor without dimensions
        return by_mask or (len(args) > 2 and args[2].ndim == 0)
    return False


def _place() -> str | None:
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(OURS):
            return f"{path}:{frame.f_lineno}"
        if path.startswith(ISAACLAB) and not path.startswith(HELPERS):
            return None
        frame = frame.f_back
    return None


def waits_of(env, action: torch.Tensor) -> Counter[str]:
    """Take a step and return what in it would wait."""
    with WaitCounter() as counter:
        env.step(action)
    return counter.found


def no_wait_in_a_step(env, size: int) -> None:
    """Assert that nothing of ours waits, neither in a step without a reset nor in one with.

    The environment has taken a step before: the first one uploads Isaac Lab's lists of joints and bodies, once.
    """
    action = torch.zeros(env.num_envs, size)
    found = waits_of(env, action)
    assert not env.reset_buf.any() and not found, found
    env.end_episodes(torch.tensor([1, 2]))
    found = waits_of(env, action)
    assert env.reset_buf[1:3].all() and not found, found


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("bool(flags.any())", 1),
        ("flags.nonzero()", 1),
        ("values[flags]", 1),
        ("values[flags] = rows", 1),
        ("values[numbers] = 0.0", 1),
        ("values[[0, 2]]", 1),
        ("values.new_tensor([1.0, 2.0])", 1),
        ("torch.where(flags, values, 0.0)", 0),
        ("values[numbers] = rows", 0),
        ("values[:, None]", 0),
        ("values[1] = 0.0", 0),
    ],
)
def test_the_counter_sees_what_waits(code, waits):
    flags, numbers = torch.tensor([True, False, True]), torch.tensor([0, 2])
    names = {"flags": flags, "numbers": numbers, "values": torch.zeros(3), "rows": torch.ones(2), "torch": torch}
    for path, expected in ((OURS + "/made_up.py", waits), (ISAACLAB + "/envs/made_up.py", 0)):
        with WaitCounter() as counter:
            exec(compile(code, path, "exec"), names)
        assert sum(counter.found.values()) == expected, counter.found


@pytest.mark.parametrize("task", ["OneArm-Regrasp", "OneArm-Throw"])
def test_kuka_also_when_goals_are_reached(task):
    with make_env(f"Epo-Kuka-{task}-v0", "physics=ovphysx", num_envs=4) as env:
        goal = goal_of(env)
        env.step(torch.zeros(4, 23))
        before = goal.goal_pos.clone()
        goal.near_count[1:3] = goal.cfg.near_steps
        found = waits_of(env, torch.zeros(4, 23))
        changed = (goal.goal_pos != before).any(dim=-1)
        assert changed.tolist() == [False, True, True, False] and not found, found
        no_wait_in_a_step(env, 23)


def test_parkour_also_when_speeds_change():
    with make_parkour("ovphysx") as env:
        goals = goals_of(env)
        env.step(torch.zeros(env.num_envs, 12))
        before = goals.speed.clone()
        goals.time_left[3] = 0.0
        found = waits_of(env, torch.zeros(env.num_envs, 12))
        assert (goals.speed != before).nonzero().tolist() == [[3]] and not found, found
        no_wait_in_a_step(env, 12)


def test_in_hand():
    with make_env("Epo-AllegroHand-Reorient-v0", "physics=ovphysx", num_envs=4) as env:
        env.step(torch.zeros(4, 16))
        no_wait_in_a_step(env, 16)


@pytest.mark.parametrize("task", ["CubePush", "CubeStack"])
def test_franka(task):
    with make_env(f"Epo-Franka-{task}-v0", "physics=ovphysx", num_envs=4) as env:
        env.step(torch.zeros(4, 7))
        no_wait_in_a_step(env, 7)
