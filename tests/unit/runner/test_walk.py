"""State is found wherever objects keep it, and comes back in place."""

import pytest
import torch

from epo_lab.runner.walk import SMALL, Walk, homeless, read, write

pytestmark = pytest.mark.unit

ENVS = 6


class Term:
    """Keeps state as the terms of a task do."""

    def __init__(self):
        self.goal = torch.rand(ENVS, 3)
        self.shown = self.goal
        self.column = torch.rand(ENVS, 4)[:, 1]
        self.count, self.ready, self.bounds, self.made_later = 0, False, (0.0, 1.0), None
        self.name = "goal"
        self.generator = torch.Generator().manual_seed(1)
        self.cfg = {"weight": 1.0}


class Owner:
    """Holds terms in dicts and lists, and itself in them."""

    def __init__(self):
        self.terms = {"a": Term(), 3: [Term(), {"inner": torch.arange(ENVS)}]}
        self.terms["a"].owner = self
        self.field = torch.rand(SMALL + 1)
        self.pair = torch.rand(2), torch.rand(2)
        self.offsets = torch.rand(3).expand(ENVS, 3)


def walk_of(owner):
    walk = Walk(lambda value: isinstance(value, Owner | Term), ENVS)
    walk.add("env", owner)
    return walk


def changed(owner):
    """Change everything that has a state, as steps do: in place, and by new tensors."""
    for leaf in walk_of(owner).leaves.values():
        if isinstance(leaf.value, torch.Tensor):
            leaf.value.add_(1)
    for term in (owner.terms["a"], owner.terms[3][0]):
        term.count, term.ready, term.bounds = term.count + 5, True, (0.5, 2.0)
        term.made_later = torch.rand(ENVS, generator=term.generator)


def test_everything_comes_back_into_another_object_of_the_kind():
    old, new = Owner(), Owner()
    changed(old)
    state = read(walk_of(old))
    changed(old)
    assert not homeless(walk_of(new), state)
    write(walk_of(new), state, "cpu")
    again = read(walk_of(new))
    assert again.keys() == state.keys()
    for path, value in state.items():
        assert torch.equal(again[path], value) if isinstance(value, torch.Tensor) else again[path] == value, path
    assert new.terms[3][0].count == 5 and new.terms["a"].bounds == (0.5, 2.0)
    assert torch.equal(new.terms["a"].made_later, state["env/terms/a/made_later"])


def test_who_shares_memory_still_does():
    old, new = Owner(), Owner()
    shown, column = new.terms["a"].shown, new.terms["a"].column
    write(walk_of(new), read(walk_of(old)), "cpu")
    assert new.terms["a"].goal is shown and torch.equal(shown, old.terms["a"].goal)
    assert new.terms["a"].column is column and torch.equal(column, old.terms["a"].column)


def test_what_is_shared_is_kept_once_and_large_constants_are_not():
    paths = set(read(walk_of(Owner())))
    assert {"env/terms/a/goal", "env/terms/3/1/inner", "env/pair/1", "env/terms/a/count"} <= paths
    assert not paths & {"env/terms/a/shown", "env/field", "env/offsets", "env/terms/a/name", "env/terms/a/cfg/weight"}


def test_a_state_of_another_version_finds_no_place():
    old, new = Owner(), Owner()
    state = read(walk_of(old))
    del new.terms[3]
    new.pair = (torch.rand(3), torch.rand(2))
    assert set(homeless(walk_of(new), state)) == {
        *("env/terms/3/0/goal", "env/terms/3/0/column", "env/terms/3/1/inner", "env/pair/0"),
        "env/terms/3/0/generator",
    }


def test_a_cache_that_nobody_has_read_yet_stays_outdated():
    class Buffer(Term):
        def __init__(self, data, timestamp):
            self.data, self.timestamp = data, timestamp

    class View(Term):
        def __init__(self):
            self._warp = torch.rand(ENVS)

    old, new, read_too = Owner(), Owner(), Owner()
    old.cache, new.cache, read_too.cache = Buffer(View(), 3.0), Buffer(None, -1.0), Buffer(View(), 1.0)
    state = read(walk_of(old))
    for owner in (new, read_too):
        assert not homeless(walk_of(owner), state)
        write(walk_of(owner), state, "cpu")
    assert (new.cache.data, new.cache.timestamp) == (None, -1.0)
    assert torch.equal(read_too.cache.data._warp, old.cache.data._warp) and read_too.cache.timestamp == 3.0


def test_a_tensor_of_another_size_is_replaced_where_somebody_can_hold_it():
    old, new = Owner(), Owner()
    old.terms["a"].goal = torch.rand(2 * ENVS, 3)
    write(walk_of(new), read(walk_of(old)), "cpu")
    assert torch.equal(new.terms["a"].goal, old.terms["a"].goal)
