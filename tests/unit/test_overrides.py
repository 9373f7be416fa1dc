from types import SimpleNamespace

import pytest

from epo_lab.base.errors import UserError
from epo_lab.configs.overrides import check_paths, split_overrides

pytestmark = pytest.mark.unit


def test_presets_and_paths_are_told_apart():
    presets, paths = split_overrides(["physics=ovphysx", "env.sim.dt=0.01", "presets=a,b", "agent.seed=1"])
    assert presets == ["physics=ovphysx", "presets=a,b"]
    assert paths == ["env.sim.dt=0.01", "agent.seed=1"]


@pytest.mark.parametrize("argument", ["--num_env=4", "word", "sim.dt=0.01", "env=3"])
def test_anything_else_is_refused(argument):
    with pytest.raises(UserError, match="unknown"):
        split_overrides([argument])


def test_misspelt_setting_is_found_at_any_depth():
    env = SimpleNamespace(sim=SimpleNamespace(dt=0.01), rewards={"torque": SimpleNamespace(weight=1.0)})
    check_paths(["env.sim.dt=1", "env.rewards.torque.weight=2"], env, None)
    with pytest.raises(UserError, match=r"env\.sim has no 'dtt'\. Did you mean dt\?"):
        check_paths(["env.sim.dtt=1"], env, None)
    with pytest.raises(UserError, match=r"env\.rewards has no 'torqe'\. Did you mean torque\?"):
        check_paths(["env.rewards.torqe.weight=2"], env, None)
