"""The runner: exact resumption, checkpoints that are kept, what is logged."""

import json

import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.diagnostics.deceptive import DeceptiveEnv
from epo_lab.diagnostics.memory import MemoryEnv
from epo_lab.runner.runner import EpoRunner
from support.equality import assert_same
from support.toy_env import ToyEnv, settings

pytestmark = pytest.mark.integration

POPULATION = {
    "num_agents": 8,
    "fitness__source": "extras:score",
    "evolution__trigger": "interval",
    "evolution__warmup_steps": 16,
    "evolution__interval_steps": 16,
    "census_interval": 3,
}


PBT = {
    "class_name": "epo_lab.algorithms:PBT",
    "pbt__interval_steps": 32,
    "pbt__start_after_steps": 32,
    "pbt__initial_delay_steps": 32,
    "pbt__threshold_std": 0.0,
    "pbt__threshold_abs": 0.0,
}


def make_runner(folder, env_class=DeceptiveEnv, recurrent=None, save_interval=4, keep=0, **algorithm):
    torch.manual_seed(3)
    cfg = settings(recurrent, **{**POPULATION, **algorithm})
    cfg |= {"save_interval": save_interval, "num_steps_per_env": 16, "keep_checkpoints": keep}
    return EpoRunner(env_class(64, seed=3), cfg, log_dir=str(folder))


@pytest.mark.parametrize(
    ("env_class", "recurrent", "algorithm"),
    [
        (DeceptiveEnv, None, {}),
        (MemoryEnv, "lstm", {}),
        (DeceptiveEnv, None, {"num_agents": 1}),
        (MemoryEnv, "gru", {}),
        (MemoryEnv, "lstm", {"diversity__attraction": 0.1, "diversity__adversarial": 0.1, "diversity__reverse": 0.1}),
        (MemoryEnv, "lstm", PBT),
    ],
    ids=["mlp", "lstm", "one agent", "gru", "cpo", "pbt"],
)
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, env_class, recurrent, algorithm):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    make_runner(whole, env_class, recurrent, **algorithm).learn(14, init_at_random_ep_len=True)
    make_runner(broken, env_class, recurrent, **algorithm).learn(11, init_at_random_ep_len=True)
    resumed = make_runner(broken, env_class, recurrent, **algorithm)
    torch.manual_seed(99)
    resumed.resume(str(broken / "model_8.pt"))
    resumed.learn(5, init_at_random_ep_len=True)
    contents = [torch.load(folder / "model_13.pt", weights_only=False) for folder in (whole, broken)]
    for content in contents:
        content["run"]["logger"].pop("seconds")
    assert_same(*contents)
    rows = [_rows(folder) for folder in (whole, broken)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 14
    if algorithm.get("num_agents") != 1:
        for name in ("pbt.jsonl",) if algorithm is PBT else ("lineage.jsonl", "population.jsonl"):
            assert (whole / name).read_text() == (broken / name).read_text() != ""


def _rows(folder):
    header, *lines = (folder / "curves.csv").read_text().splitlines()
    timing = ("Perf/total_fps", "Perf/collection_time", "Perf/learning_time")
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    return [{tag: value for tag, value in row.items() if tag not in timing} for row in rows]


def test_newest_and_best_checkpoints_are_kept(tmp_path):
    runner = make_runner(tmp_path, save_interval=1, keep=2)
    runner.learn(12)
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["best.pt", "model_10.pt", "model_11.pt"]
    fitness = [float(row["Master/fitness"]) for row in _rows(tmp_path) if row.get("Master/fitness")]
    best = torch.load(tmp_path / "best.pt", weights_only=False)
    assert best["run"]["best_score"] == pytest.approx(max(fitness), rel=1e-5)


def test_the_populations_numbers_are_those_of_the_iteration(tmp_path):
    runner = make_runner(tmp_path)
    runner.learn(9)
    last = _rows(tmp_path)[-1]
    for tag, value in runner.alg.scalars().items():
        assert float(last[tag]) == pytest.approx(value, rel=1e-5), tag
    for tag in ("Master/return", "Population/fitness_median", "Population/effective_sample_size", "Generation/events"):
        assert tag in last


class ToyEnvWithLevels(ToyEnv):
    """Hands out a value of each environment's last episode; the first environment has not finished one."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        levels = torch.arange(self.num_envs, dtype=torch.float)
        levels[0] = torch.nan
        return obs, rewards, dones, {**extras, "last_episode": {"level": levels}}


def test_what_episodes_bring_is_logged_for_the_master_alone(tmp_path):
    runner = EpoRunner(ToyEnvWithLevels(), settings(num_agents=4), log_dir=str(tmp_path))
    runner.learn(2)
    masters = [index for index, agent in enumerate(runner.alg.agent_ids.tolist()) if agent == 0 and index > 0]
    assert float(_rows(tmp_path)[-1]["Master/level"]) == pytest.approx(sum(masters) / len(masters))


class Curriculum(DeceptiveEnv):
    """Gets harder all the time: the scores fall, and what they are worth rises."""

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        worth = self.common_steps = getattr(self, "common_steps", 0) + 1
        extras["score"] = torch.full((self.num_envs,), -float(worth))
        extras["last_episode"] = {"true_objective": torch.full((self.num_envs,), float(worth))}
        return obs, rewards, dones, extras


@pytest.mark.parametrize(("fitness", "best"), [("extras:score", 11), ("return", None)])
def test_the_best_of_a_curriculum_is_judged_by_what_successes_are_worth(tmp_path, fitness, best):
    make_runner(tmp_path, Curriculum, save_interval=1, fitness__source=fitness).learn(12)
    content = torch.load(tmp_path / "best.pt", weights_only=False)
    if best is None:
        returns = [float(row["Master/fitness"]) for row in _rows(tmp_path) if row.get("Master/fitness")]
        assert content["run"]["best_score"] == pytest.approx(max(returns), rel=1e-5)
    else:
        assert content["iter"] == best


def test_a_new_run_from_a_checkpoint_has_its_weights_and_a_new_population(tmp_path):
    make_runner(tmp_path / "old").learn(9)
    runner = make_runner(tmp_path / "new")
    columns = runner.alg.agent_ids.clone()
    runner.load(str(tmp_path / "old" / "model_8.pt"))
    old = torch.load(tmp_path / "old" / "model_8.pt", weights_only=False)
    assert_same(runner.alg.actor.state_dict(), old["actor_state_dict"])
    assert runner.alg.clock.iterations == 0 and runner.alg.evolution.events == 0
    assert torch.equal(runner.alg.agent_ids, columns)
    assert runner.alg.fitness._notes.tainted.all(), "episodes that begin midway do not count"


def test_a_run_can_go_on_with_other_environments_and_another_seed(tmp_path):
    make_runner(tmp_path).learn(9)
    cfg = settings(**POPULATION) | {"num_steps_per_env": 16, "seed": 77}
    for num_envs in (128, 64):
        runner = EpoRunner(DeceptiveEnv(num_envs, seed=3), cfg)
        runner.resume(str(tmp_path / "model_8.pt"))
        assert runner.alg.clock.iterations == 9 and runner.alg.evolution.events > 0
        assert torch.equal(runner.alg.episodes._master.bool(), runner.alg.agent_ids == 0)
    saved = torch.load(tmp_path / "model_8.pt", weights_only=False)["parts"]["columns"]["agent_ids"]
    assert torch.equal(runner.alg.agent_ids, saved)


def test_a_record_that_was_cut_off_is_done_again(tmp_path):
    make_runner(tmp_path).learn(9)
    for name in ("lineage.jsonl", "population.jsonl"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text[:-20])
    runner = make_runner(tmp_path)
    runner.resume(str(tmp_path / "model_8.pt"))
    runner.learn(3)
    for name in ("lineage.jsonl", "population.jsonl"):
        assert all(json.loads(line) for line in (tmp_path / name).read_text().splitlines())


def test_lineage_is_one_json_line_a_generation(tmp_path):
    runner = make_runner(tmp_path)
    runner.learn(20)
    records = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    assert len(records) == runner.alg.evolution.events > 0


def test_a_stock_checkpoint_loads_for_one_agent_and_is_refused_for_more(tmp_path):
    cfg = settings()
    cfg["algorithm"]["class_name"] = "PPO"
    stock = EpoRunner(ToyEnv(), cfg, log_dir=str(tmp_path))
    stock.learn(1)
    content = torch.load(tmp_path / "model_0.pt", weights_only=False)
    # what rsl_rl itself writes
    keys = ("actor_state_dict", "critic_state_dict", "optimizer_state_dict", "iter", "infos")
    torch.save({key: content[key] for key in keys}, tmp_path / "stock.pt")
    one = EpoRunner(ToyEnv(), settings(num_agents=1))
    one.load(str(tmp_path / "stock.pt"))
    assert_same(one.alg.actor.state_dict(), stock.alg.actor.state_dict())
    with pytest.raises(UserError, match=r"another version of epo-lab \(format 1, now 2\).*cannot be resumed"):
        one.resume(str(tmp_path / "stock.pt"))
    four = EpoRunner(ToyEnv(), settings(num_agents=4))
    with pytest.raises(UserError, match="1 agents, this run 4"):
        four.load(str(tmp_path / "stock.pt"))


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    make_runner(tmp_path).learn(1)
    other = EpoRunner(ToyEnv(), settings(num_agents=8))
    with pytest.raises(UserError, match="does not fit this task and agent"):
        other.load(str(tmp_path / "model_0.pt"))


def test_a_population_checkpoint_without_its_state_begins_a_new_genetic_algorithm(tmp_path):
    make_runner(tmp_path).learn(9)
    content = torch.load(tmp_path / "model_8.pt", weights_only=False)
    del content["parts"]
    torch.save(content, tmp_path / "bare.pt")
    fresh = make_runner(tmp_path / "fresh")
    fresh.load(str(tmp_path / "bare.pt"))
    assert_same(fresh.alg.actor.state_dict(), content["actor_state_dict"])
    assert fresh.alg.evolution.events == 0
    assert fresh.alg.clock.iterations == 0


def test_the_line_of_progress_shows_the_population(tmp_path, capsys, curves):
    runner = make_runner(tmp_path)
    runner.logger.metric = "Metrics/score"
    runner.learn(8)
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("8/8 (100%)")
    for name in ("best", "median", "KL to master", "generations"):
        assert f"| {name} " in last, last
    assert (tmp_path / "curves.png").exists()
