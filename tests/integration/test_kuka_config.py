"""Settings of the Allegro-Kuka tasks that are decided before anything is simulated."""

import isaaclab_tasks  # noqa: F401
import numpy as np
import pytest
import yaml
from isaaclab.sim import UsdFileCfg
from isaaclab_tasks.utils import resolve_task_config

import epo_tasks  # noqa: F401
from epo_lab.base.errors import UserError
from epo_lab.commands.backends.isaac import resolve_configs
from epo_lab.configs.experiments import experiment_overrides
from support.command import ROOT

pytestmark = pytest.mark.integration

REORIENT, REGRASP = "Epo-Kuka-TwoArm-Reorient-v0", "Epo-Kuka-OneArm-Regrasp-v0"


def test_default_robot_needs_no_content_server_and_nucleus_can_be_chosen():
    cfg, _ = resolve_task_config(REORIENT, None, overrides=[])
    assert cfg.scene.robot_0.spawn.facts.endswith("kuka_allegro:FACTS")
    cfg, _ = resolve_task_config(REORIENT, None, overrides=["presets=nucleus"])
    for arm in (cfg.scene.robot_0, cfg.scene.robot_1):
        assert isinstance(arm.spawn, UsdFileCfg) and arm.spawn.usd_path.endswith("KukaAllegro/kuka.usd")


def test_objects_follow_the_settings():
    cfg, _ = resolve_task_config(REORIENT, None, overrides=["env.num_object_variants=5"])
    cfg.scene.num_envs = 8
    cfg.complete()
    assert len(cfg.scene.object.spawn.assets_cfg) == 5
    assert cfg.note().startswith("5 of 947 cuboids")
    assert resolve_task_config(REORIENT, None, overrides=[])[0].note() == ""
    cfg.own_objects = [(1.0, 2.0, 3.0)]
    cfg.complete()
    (only,) = cfg.scene.object.spawn.assets_cfg
    np.testing.assert_allclose(list(only.shapes[0].size.values()), [0.05, 0.1, 0.15])
    assert only.mass_props.mass == pytest.approx(0.3)


def test_a_family_is_chosen_by_name_and_unknown_objects_are_refused():
    cfg, _ = resolve_task_config(REORIENT, None, overrides=["env.object_families=sticks"])
    assert len(cfg.object_scales()) == 45
    for setting, message in (
        ("env.object_families=[sticks]", "is none of small, big, sticks"),
        ("env.num_object_variants=0", "at least 1"),
    ):
        cfg, _ = resolve_task_config(REORIENT, None, overrides=[setting])
        with pytest.raises(UserError, match=message):
            cfg.object_scales()


@pytest.mark.parametrize("lengths", ["[120,60,400]", "[60,60,400]", "[0,400]", "[60.5,400]", "[60,120]", "[]", "60"])
def test_stages_of_the_goal_length_must_grow_to_the_tasks_own(lengths):
    cfg, _ = resolve_task_config(REGRASP, None, overrides=[])
    cfg.goal_lengths = yaml.safe_load(lengths)
    with pytest.raises(UserError, match=r"must be whole numbers that grow from above 0 to 400") as caught:
        cfg.complete()
    assert "\n" not in str(caught.value)


def test_stages_of_the_goal_length_are_an_experiment_and_not_played():
    for task in (REGRASP, REORIENT):
        cfg, _ = resolve_task_config(task, None, overrides=[])
        cfg.complete()
        assert cfg.goal_lengths is None and cfg.curriculum.goal_length is None
    experiment = experiment_overrides(ROOT / "config", "kuka_onearm_first_goals")
    cfg, agent, _ = resolve_configs(REGRASP, "rsl_rl_epo_mlp_cfg_entry_point", experiment, [], size="cpu")
    cfg.complete()
    assert cfg.curriculum.goal_length.params["lengths"] == [60, 120, 400]
    assert (cfg.scene.num_envs, cfg.num_object_variants, len(cfg.object_families)) == (256, 32, 3)
    assert agent.actor.distribution_cfg.init_std == 0.2
    cfg.play_mode()
    assert cfg.goal_lengths is None


@pytest.mark.parametrize(
    ("name", "length", "near", "objects", "keypoints", "replaced", "end", "pushed"),
    [
        ("OneArm-Regrasp", 400, 30, 947, False, True, 0.01, True),
        ("OneArm-Throw", 300, 5, 654, False, True, 0.075, False),
        ("OneArm-Reorient", 600, 1, 947, True, False, 0.01, True),
        ("TwoArm-Regrasp", 400, 30, 947, False, True, 0.01, True),
        ("TwoArm-Reorient", 600, 1, 947, True, False, 0.01, True),
        ("TwoArm-Reorient-Hole", 600, 1, 947, True, False, 0.01, True),
        ("TwoArm-Reorient-Partition", 600, 1, 947, True, False, 0.01, True),
        ("TwoArm-Reorient-Barrier", 600, 1, 947, True, False, 0.01, True),
    ],
)
def test_what_differs_between_the_tasks(name, length, near, objects, keypoints, replaced, end, pushed):
    cfg, _ = resolve_task_config(f"Epo-Kuka-{name}-v0", None, overrides=[])
    goal = cfg.commands.goal
    assert (goal.goal_length, goal.near_steps, goal.pose, goal.replace_object) == (length, near, keypoints, replaced)
    assert (goal.tolerance, goal.tolerance_factor, goal.tolerance_successes) == ((0.075, end), 0.9, 3.0)
    assert (goal.max_successes, goal.keypoint_scale, goal.lift_height) == (50, 1.5, 0.15)
    assert len(cfg.object_scales()) == objects
    assert (cfg.actions.push is not None) == pushed


@pytest.mark.parametrize(
    ("task", "agent", "agents", "entropy"),
    [
        (REORIENT, "epo", 16, 0.002),
        (REORIENT, "sapg", 6, 0.002),
        (REORIENT, "ppo", 1, 0.0),
        (REORIENT, "cpo", 6, 0.005),
        (REORIENT, "pbt", 8, 0.002),
        ("Epo-Kuka-OneArm-Reorient-v0", "epo", 16, 0.005),
        ("Epo-Kuka-OneArm-Throw-v0", "epo_mlp", 16, 0.0),
    ],
)
def test_agents_have_the_reference_settings(task, agent, agents, entropy):
    _, cfg = resolve_task_config(task, f"rsl_rl_{agent}_cfg_entry_point", overrides=[])
    algorithm = cfg.algorithm
    assert algorithm.num_agents == agents and algorithm.entropy_coef_scale == entropy
    assert (algorithm.gamma, algorithm.lam, algorithm.clip_param, algorithm.desired_kl) == (0.99, 0.95, 0.1, 0.016)
    assert (algorithm.reward_scale, algorithm.bounds_loss_coef, algorithm.normalize_value) == (0.01, 1e-4, True)
    assert algorithm.num_learning_epochs == (4 if agent.endswith("mlp") else 2) and cfg.num_steps_per_env == 16
    if agent.endswith("mlp"):
        assert cfg.actor.hidden_dims == [1024, 1024, 512, 512]
    else:
        assert (cfg.actor.rnn_hidden_dim, cfg.actor.hidden_dims) == (768, [768, 512, 256])
        assert cfg.actor.rnn_layer_norm and cfg.critic.rnn_layer_norm
    assert cfg.actor.obs_normalization and (cfg.actor.obs_clip, cfg.critic.obs_clip) == (5.0, 5.0)
    assert algorithm.evolution.floor == (None if agent == "ppo" else 1.0)
    sources = {"ppo": "return", "epo": "rate:successes", "epo_mlp": "rate:successes"}
    assert algorithm.fitness.source == sources.get(agent, "extras:successes")


def test_cpo_has_the_papers_settings_on_each_task():
    for task, expected in {
        "Epo-Kuka-OneArm-Regrasp-v0": (1e-3, 0.2, 0.0, 0.0),
        "Epo-Kuka-OneArm-Throw-v0": (1e-3, 0.1, 0.0, 0.0),
        REORIENT: (1e-3, 0.2, 0.0, 0.005),
        "Epo-AllegroHand-Reorient-v0": (5e-4, 0.1, 0.001, 0.0),
        "Epo-ShadowHand-Reorient-v0": (1e-3, 0.2, 0.01, 0.005),
    }.items():
        cfg = resolve_task_config(task, "rsl_rl_cpo_cfg_entry_point", overrides=[])[1].algorithm
        cpo = cfg.diversity
        found = (cpo.attraction, cpo.temperature, cpo.adversarial, cfg.entropy_coef_scale)
        assert found == expected, task
        sapg = resolve_task_config(task, "rsl_rl_sapg_cfg_entry_point", overrides=[])[1].algorithm.diversity
        assert (sapg.attraction, sapg.adversarial) == (0.0, 0.0)


def test_a_size_is_of_the_training_and_says_what_else_it_changes():
    def resolve(*overrides, play_mode):
        agent = "rsl_rl_epo_cfg_entry_point"
        return resolve_configs(REORIENT, agent, [], list(overrides), size="cpu", play_mode=play_mode)

    cfg, agent, note = resolve(play_mode=False)
    assert (cfg.scene.num_envs, cfg.num_object_variants, agent.actor.obs_clip) == (96, 32, None)
    assert (agent.algorithm.fitness.source, agent.algorithm.evolution.floor) == ("return", None)
    for said in ("algorithm.clip_param=0.2", "algorithm.fitness.source=return", "actor.distribution_cfg.init_std=0.6"):
        assert f"agent.{said}" in note
    assert "num_envs" not in note and "hidden_dims" not in note
    cfg, _, _ = resolve(play_mode=True)
    assert (cfg.scene.num_envs, cfg.num_object_variants, cfg.commands.goal.tolerance) == (16, 32, (0.01, 0.01))
    cfg, agent, note = resolve("env.scene.num_envs=40", "agent.algorithm.fitness.source=extras:x", play_mode=True)
    assert cfg.scene.num_envs == 40 and agent.algorithm.fitness.source == "extras:x" and "source" not in note


def test_sizes_are_isaac_labs_presets():
    def resolve(agent, size):
        return resolve_task_config(REORIENT, f"rsl_rl_{agent}_cfg_entry_point", overrides=[f"presets={size}"])

    cfg, agent = resolve("epo", "paper")
    assert (cfg.scene.num_envs, agent.algorithm.num_agents, agent.max_iterations) == (24576, 64, 25432)
    assert resolve("sapg", "paper")[1].algorithm.num_agents == 6
    for size in ("cpu", "gpu", "paper"):
        assert resolve("ppo", size)[0].scene.num_envs % 24 == 0, "six and eight agents divide the environments"
