"""Every agent on every task that has an rsl_rl PPO config: Isaac Lab's own, and a user's."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import isaaclab_tasks  # noqa: F401
import pytest
from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlOnPolicyRunnerCfg, RslRlPpoActorCriticCfg, RslRlPpoAlgorithmCfg
from isaaclab_tasks.utils import resolve_task_config
from isaaclab_tasks.utils.hydra import resolve_presets

from epo_lab.algorithms import registry
from epo_lab.base.errors import UserError
from epo_lab.commands.backends.isaac import missing_asset, runner_settings
from epo_lab.commands.tasks import agent_entry_point
from epo_lab.configs.presets import PPO_ENTRY, add_agents, agent_names, agent_of
from support.command import ROOT, assert_bad_input

pytestmark = pytest.mark.integration

CARTPOLE, WALKER, HAND = "Isaac-Cartpole", "Isaac-Velocity-Flat-UnitreeGo2", "Isaac-Reorient-Cube-Allegro"


@configclass
class OldPpoCfg(RslRlOnPolicyRunnerCfg):
    """A config as projects of Isaac Lab 2 have it: both networks in one ``policy``."""

    num_steps_per_env = 10
    max_iterations = 100
    save_interval = 50
    experiment_name = "old"
    policy = RslRlPpoActorCriticCfg(
        init_noise_std=0.7, actor_hidden_dims=[48], critic_hidden_dims=[64], activation="elu"
    )
    algorithm = RslRlPpoAlgorithmCfg(
        num_learning_epochs=3, num_mini_batches=4, learning_rate=1e-3, schedule="adaptive", gamma=0.97, lam=0.95,
        entropy_coef=0.0, desired_kl=0.01, max_grad_norm=1.0, value_loss_coef=1.0, use_clipped_value_loss=True,
        clip_param=0.2,
    )  # fmt: skip


def made(entry, size="gpu"):
    return resolve_presets(entry(), (size,))


@pytest.mark.parametrize("name", agent_names())
def test_every_agent_is_made_from_isaac_labs_own_tasks(name):
    for task in (CARTPOLE, WALKER, HAND):
        key = agent_entry_point(gym.registry[task], name)
        _, own = resolve_task_config(task, PPO_ENTRY, overrides=[])
        _, cfg = resolve_task_config(task, key, overrides=[])
        row = registry.find({"class_name": cfg.algorithm.class_name})
        assert cfg.experiment_name == own.experiment_name
        assert runner_settings(cfg)["algorithm"]["class_name"] == cfg.algorithm.class_name
        if row.is_ppo:
            # networks and the PPO settings stay the task's
            assert cfg.actor.hidden_dims == own.actor.hidden_dims
            assert cfg.algorithm.gamma == own.algorithm.gamma
            assert cfg.algorithm.learning_rate == own.algorithm.learning_rate
            assert (cfg.num_steps_per_env, cfg.max_iterations) == (own.num_steps_per_env, own.max_iterations)


def test_a_short_run_has_generations_too():
    cfg = made(agent_of("isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg:CartpolePPORunnerCfg", "epo"))
    steps = 150 * 16
    assert cfg.algorithm.evolution.warmup_steps == steps // 4
    assert cfg.algorithm.evolution.interval_steps == round(814 * steps / (4 * 8138))
    long = made(
        agent_of("isaaclab_tasks.core.velocity.config.go2.agents.rsl_rl_ppo_cfg:UnitreeGo2RoughPPORunnerCfg", "epo")
    )
    assert long.algorithm.evolution.warmup_steps == min(8138, long.max_iterations * long.num_steps_per_env // 4)
    pbt = made(agent_of("isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg:CartpolePPORunnerCfg", "pbt"), "cpu")
    assert pbt.algorithm.pbt.initial_delay_steps == steps // 4
    assert pbt.algorithm.num_agents == 8


def test_a_population_is_ranked_by_success_if_the_task_logs_it():
    for name in ("epo", "sapg", "pbt", "esac"):
        cfg = made(agent_of("isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg:CartpolePPORunnerCfg", name))
        assert cfg.algorithm.fitness.source == "success_or_return", name


def test_all_of_isaac_labs_ppo_tasks_have_a_population():
    tasks = [name for name, spec in gym.registry.items() if name.startswith("Isaac") and PPO_ENTRY in spec.kwargs]
    assert len(tasks) > 80
    for task in tasks:
        entries = dict(gym.registry[task].kwargs)
        add_agents(entries)
        cfg = made(entries["rsl_rl_epo_cfg_entry_point"], "cpu")
        assert cfg.algorithm.class_name == registry.EPO, task
        assert cfg.algorithm.num_agents == 8, task


def test_a_config_of_an_older_project_serves_too():
    epo, sac = made(agent_of(OldPpoCfg, "epo")), made(agent_of(OldPpoCfg, "sac"), "cpu")
    assert epo.algorithm.num_learning_epochs == 3
    assert epo.policy.actor_hidden_dims == [48], "Isaac Lab makes the two models of it, as for PPO"
    assert sac.actor.hidden_dims == [256, 128]
    assert sac.algorithm.gamma == 0.97
    # what rsl_rl's runner gets in the end
    assert runner_settings(epo)["actor"]["distribution_cfg"]["init_std"] == 0.7
    assert runner_settings(sac)["critic"]["hidden_dims"] == [256, 128]


def test_what_a_registration_has_already_stays():
    entries = {PPO_ENTRY: OldPpoCfg, "rsl_rl_epo_cfg_entry_point": "mine"}
    add_agents(entries)
    assert entries["rsl_rl_epo_cfg_entry_point"] == "mine"
    assert entries["rsl_rl_ppo_cfg_entry_point"] is OldPpoCfg
    assert {f"rsl_rl_{name}_cfg_entry_point" for name in agent_names()} <= set(entries)


def test_tasks_without_a_ppo_config_are_refused():
    with pytest.raises(UserError, match="no rsl_rl agent: populations are made from"):
        agent_entry_point(gym.registry["IsaacContrib-Factory-PegInsert-Direct"], "epo")
    with pytest.raises(UserError, match=r"has no agent 'epoo'.*Did you mean epo"):
        agent_entry_point(gym.registry[CARTPOLE], "epoo")
    with pytest.raises(UserError, match="is made from a task's PPO config"):
        agent_of("isaaclab_tasks.core.velocity.config.anymal_d.agents.rsl_rl_distillation_cfg:"
                 "AnymalDFlatDistillationRunnerCfg", "epo")()  # fmt: skip


def test_a_missing_file_of_the_content_server_is_named():
    line = missing_asset(CARTPOLE, "Unable to find the file: https://content/Isaac/cartpole.usd")
    assert line.startswith(f"{CARTPOLE} needs https://content/Isaac/cartpole.usd, which is not on this machine")


# --- the tasks themselves, with stand-ins for what lies on the content server ----------------------------------------


@pytest.fixture(scope="module")
def assets(tmp_path_factory):
    from support.assets import write_assets

    return write_assets(tmp_path_factory.mktemp("assets"))


def command(name, *args, cwd, env):
    words = [sys.executable, *(["-m", "isaaclab", name] if name == "isaaclab" else [str(ROOT / f"scripts/{name}.py")])]
    return subprocess.run([*words, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


def test_cartpole_trains_and_plays_a_population_without_a_gpu_named(assets, tmp_path):
    options = ("--num_envs", "64", "--max_iterations", "8", "agent.algorithm.evolution.trigger=interval")
    quick = ("agent.algorithm.evolution.warmup_steps=1", "env.episode_length_s=0.5")
    result = command("train", "--task", CARTPOLE, "--agent", "epo", *options, *quick, cwd=tmp_path, env=assets)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "agent epo, size cpu (no CUDA found): 64 envs, 8 agents" in result.stdout
    folder = next((tmp_path / "logs/rsl_rl/cartpole").glob("20*"))
    assert json.loads((folder / "run.json").read_text())["task"] == CARTPOLE
    assert (folder / "lineage.jsonl").read_text().count("\n") >= 1, "a generation happened"
    # who plays is read from the run folder
    result = command("play", "--checkpoint", str(folder), "--agents", "all", quick[1], cwd=tmp_path, env=assets)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "Metrics/success_rate" in result.stdout


def test_a_missing_asset_is_one_line(assets, tmp_path):
    nowhere = {**assets, "ISAACSIM_ASSET_ROOT": str(tmp_path / "nothing")}
    result = command("train", "--task", CARTPOLE, "--agent", "epo", cwd=tmp_path, env=nowhere)
    assert_bad_input(result, "train: Isaac-Cartpole needs", "ISAACSIM_ASSET_ROOT")
    assert not list(tmp_path.glob("logs/rsl_rl/cartpole/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "agent", "engine"),
    [(WALKER, "sapg", "newton_mjwarp"), (HAND, "esac", "newton_mjwarp"), (CARTPOLE, "sac", "ovphysx")],
)
def test_walker_and_hand_train(assets, tmp_path, task, agent, engine):
    args = ("--num_envs", "60", "--max_iterations", "2", f"physics={engine}")
    members = ("agent.algorithm.num_agents=6",) if agent == "esac" else ()
    result = command("train", "--task", task, "--agent", agent, *args, *members, cwd=tmp_path, env=assets)
    assert result.returncode == 0, result.stderr[-2000:]
    assert list(tmp_path.glob("logs/rsl_rl/*/*/model_1.pt"))


@pytest.mark.slow
def test_agents_are_compared_evaluated_and_exported_on_isaac_labs_tasks(assets, tmp_path):
    args = ("--num_envs", "64", "--max_iterations", "2", "--seeds", "1", "--jobs", "1", "--output", "out")
    result = command("compare", "--tasks", CARTPOLE, "--agents", "ppo,epo", *args, cwd=tmp_path, env=assets)
    assert result.returncode == 0, result.stderr[-2000:]
    rows = [line.split(",") for line in (tmp_path / "out/scores.csv").read_text().splitlines() if ",final," in line]
    assert [row[1] for row in rows] == ["ppo", "epo"] and all(float(row[-1]) == float(row[-1]) for row in rows)
    run = next(tmp_path.glob(f"logs/rsl_rl/compare/{CARTPOLE}/*_epo-0"))
    result = command("evaluate", "--checkpoint", str(run), "--members", "0,3", cwd=tmp_path, env=assets)
    assert result.returncode == 0, result.stderr[-2000:]
    assert json.loads((run / "evaluation.json").read_text())["evaluations"]
    result = command("export", "--checkpoint", str(run), cwd=tmp_path, env=assets)
    assert result.returncode == 0 and (run / "exported/policy.onnx").stat().st_size > 0, result.stderr[-2000:]


OWN = """
import gymnasium as gym

from epo_lab.configs.presets import agent_of

PPO = "isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg:CartpolePPORunnerCfg"
gym.register(
    id="My-Cartpole",
    entry_point="isaaclab.envs:ManagerBasedRLEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": "isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg:CartpoleEnvCfg",
        "rsl_rl_cfg_entry_point": agent_of(PPO, "epo"),
        "default_agent": "rsl_rl",
    },
)
"""


@pytest.mark.slow
def test_one_line_of_a_registration_is_enough_for_isaac_labs_own_train(assets, tmp_path):
    package = tmp_path / "my_tasks.py"
    package.write_text(OWN)
    info = tmp_path / "my_tasks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[isaaclab.tasks]\nmy_tasks = my_tasks\n")
    env = {**assets, "PYTHONPATH": str(tmp_path)}
    args = ("train", "--rl_library", "rsl_rl", "--task", "My-Cartpole", "--num_envs", "64", "--max_iterations", "2")
    words = [sys.executable, "-m", "isaaclab", *args, "--device", "cpu", "presets=cpu"]
    result = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    models = list(Path(tmp_path).glob("logs/rsl_rl/cartpole/*/model_1.pt"))
    assert models
    import torch

    assert torch.load(models[0], weights_only=True)["actor_state_dict"]["genes"].shape[0] == 8
