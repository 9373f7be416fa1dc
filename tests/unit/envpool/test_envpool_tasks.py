"""EnvPool's tasks: how observations are flattened and actions scaled, which names there are, what is refused."""

import re
import sys

import gymnasium as gym
import numpy as np
import pytest

from epo_lab.algorithms import registry
from epo_lab.base.errors import UserError
from epo_lab.commands.backends.base import make_backend
from epo_lab.commands.tasks import find_task, metric_tag, score_name
from epo_lab.configs.names import agent_names
from epo_lab.envpool.agents import agent_settings
from epo_lab.envpool.env import ActionScale, Flatten
from epo_lab.envpool.tasks import read_task, refusal
from support.command import ROOT

pytestmark = pytest.mark.unit

VECTOR = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)
CONTINUOUS = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)


@pytest.fixture
def envpool():
    return pytest.importorskip("envpool", reason="EnvPool is not installed (./isaaclab.sh -i envpool)")


def test_a_dict_is_flattened_in_the_order_of_its_keys():
    space = gym.spaces.Dict(
        {
            "b": gym.spaces.Box(-1.0, 1.0, (2, 2), np.float64),
            "a": gym.spaces.Dict({"z": gym.spaces.Box(-1.0, 1.0, (), np.float32), "y": gym.spaces.MultiBinary(2)}),
        }
    )
    obs = {
        "b": np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]),
        "a": {"z": np.array([0.5, 0.25], dtype=np.float32), "y": np.array([[True, False], [False, True]])},
    }
    flat = Flatten(space)(obs)
    assert flat.dtype == np.float32
    # a.y, a.z, b
    np.testing.assert_array_equal(flat, [[1, 0, 0.5, 1, 2, 3, 4], [0, 1, 0.25, 5, 6, 7, 8]])


def test_flattening_copies_so_that_the_next_step_changes_nothing():
    obs = np.ones((2, 3), dtype=np.float32)
    flat = Flatten(gym.spaces.Box(-1.0, 1.0, (3,), np.float32))(obs)
    obs[:] = 0.0
    assert (flat == 1.0).all()


def test_actions_reach_both_bounds_and_no_farther():
    space = gym.spaces.Box(np.array([-2.0, 0.0, -0.4]), np.array([4.0, 1.0, 0.4]), dtype=np.float64)
    scale = ActionScale(space, 4)
    actions = np.array([[-1.0] * 3, [1.0] * 3, [0.0] * 3, [7.0, -7.0, 0.5]], dtype=np.float32)
    expected = [[-2.0, 0.0, -0.4], [4.0, 1.0, 0.4], [1.0, 0.5, 0.0], [4.0, 0.0, 0.2]]
    scaled = scale(actions)
    assert scaled.dtype == np.float64
    np.testing.assert_allclose(scaled, expected, atol=1e-12)
    np.testing.assert_array_equal(actions[3], np.array([7.0, -7.0, 0.5], dtype=np.float32))


def test_actions_without_bounds_stay_as_they_are():
    space = gym.spaces.Box(np.array([-np.inf, -1e10, -2.0]), np.array([np.inf, 1e10, 2.0]), dtype=np.float64)
    np.testing.assert_array_equal(ActionScale(space, 1)(np.array([[7.0, -3.0, 7.0]])), [[7.0, -3.0, 2.0]])


@pytest.mark.parametrize(
    ("observations", "actions", "players", "reason"),
    [
        (VECTOR, CONTINUOUS, 1, ""),
        (gym.spaces.Dict({"a": VECTOR, "b": gym.spaces.Dict({"c": VECTOR})}), CONTINUOUS, 1, ""),
        (VECTOR, gym.spaces.Discrete(4), 1, "discrete"),
        (VECTOR, gym.spaces.Box(0, 5, (2,), np.int32), 1, "discrete"),
        (VECTOR, gym.spaces.Box(-1.0, 1.0, (2, 2), np.float32), 1, "shape"),
        (gym.spaces.Box(0, 255, (64, 64), np.uint8), CONTINUOUS, 1, "images"),
        (gym.spaces.Dict({"a": VECTOR, "eye": gym.spaces.Box(0, 1, (3, 8, 8))}), CONTINUOUS, 1, "images (eye)"),
        (VECTOR, CONTINUOUS, 4, "4 players"),
    ],
)
def test_only_vectors_and_continuous_actions_are_taken(observations, actions, players, reason):
    said = refusal(observations, actions, players)
    assert reason in said
    assert bool(reason) == bool(said)


def test_a_missing_envpool_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(UserError, match=r"not installed: './isaaclab.sh -i envpool'"):
        find_task("EnvPool/Hopper-v4")


def test_a_wrong_name_gets_the_nearest_ones(envpool):
    with pytest.raises(UserError, match=r"no task 'HalfCheeta-v4'\. Did you mean HalfCheetah-v4"):
        find_task("EnvPool/HalfCheeta-v4")


@pytest.mark.parametrize("task", ["EnvPool/Hopper-v4", "envpool/Hopper-v4"])
def test_a_task_is_found_whatever_the_case_of_its_prefix(envpool, task):
    spec = find_task(task)
    assert spec.id == "EnvPool/Hopper-v4"
    assert make_backend(spec).engine == "EnvPool"
    assert metric_tag(spec) == "Metrics/episode_return"
    assert score_name(spec) == "return"


def test_names_with_a_slash_of_their_own_are_found(envpool):
    assert find_task("EnvPool/MetaWorld/Reach-v3").id == "EnvPool/MetaWorld/Reach-v3"


@pytest.mark.parametrize(
    ("task", "says"),
    [("CartPole-v1", "discrete"), ("Pong-v5", "discrete"), ("CarRacing-v3", "images"), ("VizdoomCustom-v1", "cannot")],
)
def test_tasks_for_other_agents_are_refused_in_a_line(envpool, refuse, task, says):
    refuse("train", "--task", f"EnvPool/{task}", says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["env.reset_noise_scal=0.1"], "reset_noise_scale"),
        (["env.frame_skip=abc"], "takes a number"),
        (["env.num_threads=-1"], "num_threads"),
        (["physics=ovphysx"], "no physics engines"),
        (["--viz", "viser"], "nothing to look at"),
        (["--agent", "sapg", "--num_envs", "64"], "64"),
    ],
)
def test_wrong_settings_are_found_before_anything_starts(envpool, refuse, options, says):
    refuse("train", "--task", "EnvPool/Hopper-v4", *options, says=says)


def test_every_task_that_the_docs_name_can_be_trained_on(envpool):
    table = (ROOT / "docs/envpool.md").read_text().partition("| family |")[2].partition("\n\n")[0]
    names = re.findall(r"`([\w/]+-v\d+|Mjlab[\w-]+)`", table)
    assert len(names) > 20
    for name in names:
        assert find_task(f"EnvPool/{name}").kwargs["envpool"] == name
        assert read_task(name).max_episode_length >= 50


def test_every_agent_has_settings_that_pass_the_check():
    for agent in agent_names():
        sections = agent_settings("EnvPool/Hopper-v4", agent)
        algorithm = sections["agent"]["algorithm"]
        row = registry.find(algorithm)
        row.check(sections["agent"], sections["env"]["num_envs"], 1)
        steps = sections["env"]["num_envs"] * sections["agent"]["num_steps_per_env"]
        assert 0 <= sections["agent"]["max_iterations"] * steps - 1_000_000 < steps
        if row.is_ppo:
            assert algorithm["normalize_value"] is True
            assert algorithm["learning_rate"] == 3e-4
        if row.final_obs:
            # as many gradient steps as environment steps, whatever the number of environments
            assert algorithm["updates_per_step"] == sections["env"]["num_envs"]
            assert algorithm["batch_size"] <= 512
        if not row.is_ppo:
            assert sections["env"]["num_envs"] == row.num_agents(algorithm, 1)
            assert sections["agent"]["save_interval"] * 10 <= sections["agent"]["max_iterations"]


@pytest.mark.parametrize(
    ("task", "episodes", "sigma", "rate"),
    [
        ("HalfCheetah-v4", 5, 5e-3, 5e-3),
        ("Swimmer-v4", 1, 5e-3, 5e-3),
        ("Ant-v4", 10, 5e-3, 1e-4),
        ("CheetahRun-v1", 1, 1e-2, 1e-2),
        ("WalkerWalk-v1", 5, 1e-2, 1e-2),
    ],
)
def test_esac_has_its_papers_constants_on_its_papers_tasks(task, episodes, sigma, rate):
    settings = agent_settings(f"EnvPool/{task}", "esac_paper")["agent"]["algorithm"]
    assert settings["esac"]["sac_episodes"] == episodes
    assert (settings["es"]["sigma"], settings["es"]["learning_rate"]) == (sigma, rate)
