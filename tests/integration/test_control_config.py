"""Settings of the humanoid and in-hand tasks that need no simulation."""

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
@pytest.mark.parametrize(("agent", "agents"), [("ppo", 1), ("sapg", 6), ("epo", 8)])
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
        assert (algorithm.evolution.gamma, algorithm.entropy_coef_scale) == (gamma, entropy)


@pytest.mark.parametrize(("task", "iterations"), [(HUMANOID, 5e9), (ALLEGRO, 2e10), (SHADOW, 2e10)])
def test_sizes_fit_the_populations_and_paper_has_the_papers_steps(task, iterations):
    for size in ("cpu", "gpu", "paper"):
        cfg, agent = resolve_task_config(task, "rsl_rl_ppo_cfg_entry_point", overrides=[f"presets={size}"])
        assert cfg.scene.num_envs % 24 == 0, "six and eight agents divide the environments"
    assert cfg.scene.num_envs == 24576 and agent.algorithm.num_mini_batches == 2
    assert agent.max_iterations * 8 * 24576 == pytest.approx(iterations, rel=1e-4)
