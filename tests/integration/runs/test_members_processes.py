"""ES, CEM-RL and ESAC in two processes over gloo: members are divided, decisions are common, ES sends returns only."""

import copy
import json
import tempfile
from pathlib import Path

import pytest
import torch

from epo_lab.algorithms import registry
from epo_lab.base.errors import UserError
from epo_lab.diagnostics.agents import agent_settings
from support.counting import sent_elements
from support.distributed import run_in_two_processes
from support.equality import assert_same
from support.fixed_start import FixedStart, make_runner

pytestmark = pytest.mark.integration

MEMBERS, ENVS_EACH, ITERATIONS = 8, 3, 7
ES = {"algorithm": {"num_agents": MEMBERS}}
REPLAY = {
    "actor": {"hidden_dims": [16, 16]},
    "critic": {"hidden_dims": [16, 16]},
    "algorithm": {
        "num_agents": MEMBERS,
        "warmup_steps": 100,
        "batch_size": 32,
        "updates_per_step": 0.5,
        "replay": {"size": 2000},
    },
}
ESAC_TURNS = {"esac": {"gradient_interval": 2, "sac_episodes": 30, "least_probability": 1.0}}


def outcome(runner):
    """Return what all processes must agree on, and what each has for itself."""
    algorithm = runner.alg
    common = {
        "evolution": copy.deepcopy(algorithm.evolution.state_dict()),
        "rows": algorithm.members.policies.rows.clone(),
        "policy": copy.deepcopy(dict(algorithm.policy().state_dict())),
        "actor": copy.deepcopy(dict(algorithm.actor.state_dict())),
        "clock": algorithm.clock.state_dict(),
        "scalars": algorithm.scalars(),
    }
    return {
        "common": common,
        "slots": list(algorithm.members.slots),
        "ids": sorted(set(algorithm.env_members())),
        "parts": list(algorithm.parts()),
    }


def train_es(rank, world, iterations=ITERATIONS, folder=None, **changes):
    runner = make_runner("es", rank, MEMBERS * ENVS_EACH // world, folder, **{**ES, **changes})
    runner.learn(iterations)
    return outcome(runner)


def count_es(rank, width):
    """Return what a run sends before it begins, then in its iterations, and how many generations these were."""
    runner = make_runner("es", rank, MEMBERS * ENVS_EACH // 2, **ES, actor={"hidden_dims": [width, width]})
    with sent_elements() as first:
        runner.learn(1)
    before = runner.alg.evolution.number
    with sent_elements() as later:
        runner.alg.broadcast_parameters = lambda: None
        runner.learn(4)
    counts = {"before": before, "generations": runner.alg.evolution.number - before}
    return {"first": sum(first), "later": sum(later), "D": len(runner.alg.evolution.theta), **counts}


def es_in_a_process(rank):
    folder = [tempfile.mkdtemp()]
    torch.distributed.broadcast_object_list(folder, src=0)
    return {
        "run": train_es(rank, 2, folder=folder[0]),
        "counts": [count_es(rank, width) for width in (16, 64)],
        "folder": folder[0],
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_in_two_processes(es_in_a_process, tmp_path_factory.mktemp("ranks"))


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_members_are_divided_and_decisions_are_common(results):
    first, second = (result["run"] for result in results)
    assert first["slots"] == first["ids"] == [0, 1, 2, 3]
    assert second["slots"] == second["ids"] == [4, 5, 6, 7]
    assert_same(first["common"], second["common"])
    assert first["common"]["evolution"]["number"] >= 5


def test_two_processes_of_es_do_to_the_bit_what_one_does(results, one_thread, tmp_path):
    whole = train_es(0, 1, folder=str(tmp_path))
    assert_same(results[0]["run"]["common"], whole["common"])
    lines = [Path(folder, "generations.jsonl").read_text() for folder in (results[0]["folder"], tmp_path)]
    assert lines[0] == lines[1] and len(json.loads(lines[0].splitlines()[0])["fitness"]) == MEMBERS


def test_es_sends_theta_once_and_then_returns_only(results):
    # per iteration: 4 sums of every member, 6 of finished episodes, a signal; per generation: 2 of a checksum
    for result in results:
        narrow, wide = result["counts"]
        assert wide["D"] > 10 * narrow["D"]
        for count in (narrow, wide):
            an_iteration = 4 * MEMBERS + 6 + 1
            assert count["before"] + count["generations"] == 5
            assert count["later"] == 4 * an_iteration + 2 * count["generations"]
            assert count["first"] == count["D"] + an_iteration + 2 * count["before"]


@pytest.mark.parametrize("agent", ["es", "cem_rl", "esac"])
def test_members_that_processes_cannot_divide_are_refused_before_anything_starts(agent):
    made = agent_settings("Epo-Diag-Smooth-v0", agent)["agent"]
    made["algorithm"]["num_agents"] = MEMBERS
    check = registry.find(made["algorithm"]).check
    check(made, MEMBERS // 2 * ENVS_EACH, 2)
    with pytest.raises(UserError, match=r"3 processes cannot divide 8 members evenly.*num_agents to a multiple of 3"):
        check(made, MEMBERS * ENVS_EACH, 3)
    with pytest.raises(UserError, match="4 agents cannot share 14 environments"):
        check(made, 14, 2)


# --- with a replay, and what resumes


def train_replay(rank, world, agent, iterations, **changes):
    settings = copy.deepcopy(REPLAY)
    for name, values in changes.items():
        settings[name] |= values
    runner = make_runner(agent, rank, MEMBERS * ENVS_EACH // world, **settings)
    with sent_elements() as sent:
        runner.learn(iterations)
    algorithm = runner.alg
    result = outcome(runner)
    result["common"] |= {name: dict(module.state_dict()) for name, module in algorithm.learner.modules().items()}
    result["common"] |= {name: step.state_dict() for name, step in algorithm.learner.steps().items()}
    result["common"] |= {"factor": algorithm.return_scale.factor}
    result |= {
        "replay": algorithm.replay.state_dict(),
        "sent": sum(sent),
        "networks": network_elements(agent, algorithm),
    }
    return result


def network_elements(agent, algorithm):
    """Return the elements of all gradients of a run and of the networks that the first process sends at its start."""
    number = algorithm.clock.gradient_steps
    # a step of the critic, and one of the policy or of all learning members together
    actors = algorithm.members.policies.num_parameters * (MEMBERS // 2 if agent == "cem_rl" else 1)
    turns = number if agent == "cem_rl" else number // algorithm.options.policy_delay
    gradients = number * sum(p.numel() for p in algorithm.critic.net.parameters()) + turns * actors
    modules = [algorithm.actor, *algorithm.learner.modules().values()]
    first = [value for module in modules for value in (*module.parameters(), *module.buffers())]
    first += [] if agent == "cem_rl" else algorithm.master.parameters()
    return gradients + sum(value.numel() for value in first)


def without_gradients(rank, world, agent):
    """Evolution alone is what can be compared: two replays are not one."""
    own = {"warmup_steps": 1, "updates_per_step": 1e-6, **(ESAC_TURNS if agent == "esac" else {})}
    found = train_replay(rank, world, agent, 12, algorithm=own, actor={"obs_normalization": False})
    evolution = found["common"]["evolution"]
    return {"evolution": evolution, "rows": found["common"]["rows"], "policy": found["common"]["policy"]}


def resumed_es(rank):
    """Train in two parts, and return the first part's end and the second's beginning and end."""
    folder = [tempfile.mkdtemp()]
    torch.distributed.broadcast_object_list(folder, src=0)
    normalised = {"actor": {"obs_normalization": True}}
    before = train_es(rank, 2, 5, folder[0], **normalised)
    # the first process writes the checkpoint
    torch.distributed.barrier()
    runner = make_runner("es", rank, MEMBERS * ENVS_EACH // 2, folder[0], **ES, **normalised)
    runner.resume(f"{folder[0]}/model_4.pt")
    begun = outcome(runner)
    runner.learn(4)
    return {"before": before, "begun": begun, "after": outcome(runner), "folder": folder[0]}


def replay_in_a_process(rank):
    own = {"esac": ESAC_TURNS, "cem_rl": {}}
    return {
        "runs": {agent: train_replay(rank, 2, agent, 16, algorithm=own[agent]) for agent in own},
        "evolutions": {agent: without_gradients(rank, 2, agent) for agent in own},
        "resumed": resumed_es(rank),
    }


@pytest.fixture(scope="module")
def with_replay(tmp_path_factory):
    return run_in_two_processes(replay_in_a_process, tmp_path_factory.mktemp("ranks"))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["cem_rl", "esac"])
def test_networks_and_members_are_common_and_replays_are_not(with_replay, agent):
    first, second = (result["runs"][agent] for result in with_replay)
    assert first["slots"] == [0, 1, 2, 3] and second["slots"] == [4, 5, 6, 7]
    different = {"Replay/transitions"}
    for result in (first, second):
        result["common"]["scalars"] = {k: v for k, v in result["common"]["scalars"].items() if k not in different}
    assert_same(first["common"], second["common"])
    assert first["common"]["evolution"]["number"] >= 3 and first["common"]["clock"]["gradient_steps"] > 20
    assert first["replay"]["size"] == second["replay"]["size"] > 0
    assert not torch.equal(first["replay"]["rewards"], second["replay"]["rewards"])
    assert "replay" not in first["parts"]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["cem_rl", "esac"])
def test_gradients_and_first_networks_are_nearly_all_that_is_sent(with_replay, agent):
    for result in with_replay:
        run = result["runs"][agent]
        assert run["networks"] <= run["sent"] < 1.05 * run["networks"]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["cem_rl", "esac"])
def test_evolution_of_two_processes_is_to_the_bit_that_of_one(with_replay, agent, one_thread):
    whole = without_gradients(0, 1, agent)
    assert whole["evolution"]["number"] >= 3
    for result in with_replay:
        assert_same(result["evolutions"][agent], whole)


@pytest.mark.slow
def test_a_resumed_population_is_the_same_on_both_and_keeps_its_shares(with_replay):
    first, second = (result["resumed"] for result in with_replay)
    for part in ("before", "begun", "after"):
        assert_same(first[part]["common"], second[part]["common"], part)
        assert first[part]["ids"] == [0, 1, 2, 3] and second[part]["ids"] == [4, 5, 6, 7]
    for key in ("evolution", "rows", "policy", "clock"):
        assert_same(first["before"]["common"][key], first["begun"]["common"][key], key)
    assert first["after"]["common"]["evolution"]["number"] > first["before"]["common"]["evolution"]["number"]
    assert "obs_normalizer._mean" in first["after"]["common"]["actor"]


@pytest.mark.slow
def test_one_process_goes_on_with_the_population_of_two(with_replay):
    resumed = with_replay[0]["resumed"]
    normalised = {"actor": {"obs_normalization": True}}
    runner = make_runner("es", 0, 2 * MEMBERS, **ES, **normalised)
    runner.resume(f"{resumed['folder']}/model_4.pt")
    assert_same(runner.alg.evolution.state_dict(), resumed["before"]["common"]["evolution"])
    assert sorted(set(runner.alg.env_members())) == list(range(MEMBERS))
    number = runner.alg.evolution.number
    runner.learn(4)
    assert runner.alg.evolution.number > number


def test_the_problem_draws_nothing():
    envs = [FixedStart(4, seed=seed) for seed in (0, 1)]
    for _ in range(FixedStart.horizon + 3):
        seen = [env.step(torch.full((4, 2), 0.3))[0]["policy"] for env in envs]
        assert torch.equal(*seen) and bool((seen[0] == seen[0][0]).all())
