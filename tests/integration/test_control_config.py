"""Settings of the humanoid, in-hand and Franka tasks that need no simulation."""

import isaaclab_tasks  # noqa: F401
import pytest
from isaaclab_tasks.utils import resolve_task_config

import epo_tasks  # noqa: F401

pytestmark = pytest.mark.integration

HUMANOID = "Epo-Humanoid-Run-v0"
ALLEGRO = "Epo-AllegroHand-Reorient-v0"
SHADOW = "Epo-ShadowHand-Reorient-v0"


@pytest.mark.parametrize(
    ("task", "horizon", "kl", "network", "gamma", "entropy"),
    [
        (HUMANOID, 32, 0.008, [400, 200, 100], 0.5, 0.0),
        (ALLEGRO, 8, 0.016, [512, 256, 128], 0.3, 0.0),
        (SHADOW, 8, 0.016, [512, 512, 256, 128], 0.3, 0.005),
    ],
)
@pytest.mark.parametrize(("agent", "agents"), [("ppo", 1), ("sapg", 6), ("epo", 16)])
def test_agents_have_the_reference_settings(task, horizon, kl, network, gamma, entropy, agent, agents):
    _, cfg = resolve_task_config(task, f"rsl_rl_{agent}_cfg_entry_point", overrides=[])
    algorithm = cfg.algorithm
    assert algorithm.num_agents == agents
    assert (cfg.num_steps_per_env, cfg.clip_actions) == (horizon, 1.0)
    assert (algorithm.learning_rate, algorithm.desired_kl, algorithm.clip_param) == (5e-4, kl, 0.2)
    assert (algorithm.gamma, algorithm.lam, algorithm.num_learning_epochs) == (0.99, 0.95, 5)
    assert (algorithm.reward_scale, algorithm.bounds_loss_coef, algorithm.normalize_value) == (0.01, 1e-4, True)
    assert cfg.actor.hidden_dims == cfg.critic.hidden_dims == network
    assert algorithm.fitness.source == "return"
    if agents > 1:
        # CPO's paper has one for SAPG and CPO on the humanoid
        expected = 0.002 if (task, agent) == (HUMANOID, "sapg") else entropy
        assert (algorithm.evolution.gamma, algorithm.entropy_coef_scale) == (gamma, expected)


@pytest.mark.parametrize("task", ["Epo-Franka-CubePush-v0", "Epo-Franka-CubeStack-v0"])
@pytest.mark.parametrize(("agent", "agents"), [("ppo", 1), ("sapg", 6), ("cpo", 6), ("epo", 64), ("pbt", 6)])
def test_franka_has_the_settings_of_cpos_table_5(task, agent, agents):
    cfg, runner = resolve_task_config(task, f"rsl_rl_{agent}_cfg_entry_point", overrides=["presets=paper"])
    algorithm = runner.algorithm
    assert algorithm.num_agents == agents
    assert (algorithm.gamma, algorithm.lam, algorithm.clip_param) == (0.99, 0.95, 0.2)
    assert (algorithm.learning_rate, algorithm.desired_kl, algorithm.max_grad_norm) == (5e-4, 0.008, 1.0)
    # 4 times half the squared error
    assert (algorithm.value_loss_coef, algorithm.bounds_loss_coef) == (2.0, 1e-4)
    assert (runner.num_steps_per_env, algorithm.num_learning_epochs, algorithm.reward_scale) == (16, 8, 1.0)
    assert (runner.actor.rnn_hidden_dim, runner.actor.hidden_dims) == (256, [256, 128, 64])
    assert cfg.scene.num_envs * 16 * runner.max_iterations == pytest.approx(5e9, rel=1e-4)
    # CPO's batch is twice as long: mini-batches of 4 rows an environment in both
    assert algorithm.num_mini_batches == (8 if agent == "cpo" else 4)
    if agents > 1 and agent != "pbt":
        assert algorithm.entropy_coef_scale == 0.005
    if agent == "cpo":
        assert (algorithm.diversity.attraction, algorithm.diversity.temperature) == (5e-4, 0.1)
        assert (algorithm.diversity.reverse, algorithm.diversity.adversarial) == (0.0, 0.0)
    # the leader has no entropy bonus
    assert algorithm.entropy_coef == 0.0
    cfg.play_mode()
    assert cfg.scene.num_envs == 16 and cfg.commands.goal.debug_vis


@pytest.mark.parametrize(("task", "rate"), [(HUMANOID, 5e-4), ("Epo-Anymal-Flat-v0", 3e-4)])
@pytest.mark.parametrize("agent", ["sapg", "cpo"])
def test_walkers_have_the_settings_of_cpos_table_6(task, rate, agent):
    cfg, runner = resolve_task_config(task, f"rsl_rl_{agent}_cfg_entry_point", overrides=["presets=paper"])
    algorithm = runner.algorithm
    assert (algorithm.num_agents, cfg.scene.num_envs, runner.num_steps_per_env) == (6, 24576, 8)
    assert (algorithm.learning_rate, algorithm.desired_kl, algorithm.clip_param) == (rate, 0.008, 0.2)
    assert (algorithm.num_learning_epochs, algorithm.num_mini_batches) == (5, 4 if agent == "cpo" else 2)
    assert (algorithm.entropy_coef, algorithm.entropy_coef_scale) == (0.0, 0.002), "none for the leader"
    assert (algorithm.gamma, algorithm.lam, algorithm.max_grad_norm) == (0.99, 0.95, 1.0)
    # 4 times half the squared error
    assert (algorithm.value_loss_coef, algorithm.bounds_loss_coef) == (2.0, 1e-4)
    assert runner.actor.hidden_dims == [768, 512, 256]
    if agent == "cpo":
        diversity = algorithm.diversity
        assert (diversity.attraction, diversity.temperature) == (1e-3, 0.2)
        assert (diversity.reverse, diversity.adversarial) == (0.0, 0.0)
        assert tuple(diversity.classifier_dims) == (768, 512, 256)


@pytest.mark.parametrize(("task", "iterations"), [(HUMANOID, 5e9), (ALLEGRO, 2e10), (SHADOW, 2e10)])
def test_sizes_fit_the_populations_and_paper_has_the_papers_steps(task, iterations):
    for size in ("cpu", "gpu", "paper"):
        cfg, agent = resolve_task_config(task, "rsl_rl_ppo_cfg_entry_point", overrides=[f"presets={size}"])
        assert cfg.scene.num_envs % 24 == 0, "six and eight agents divide the environments"
    assert cfg.scene.num_envs == 24576 and agent.algorithm.num_mini_batches == 2
    assert agent.max_iterations * 8 * 24576 == pytest.approx(iterations, rel=1e-4)
