"""Population-based training in two processes over gloo: policies are divided, decisions are common."""

import copy

import pytest
import torch
from tensordict import TensorDict

from epo_lab.algorithms import pbt as pbt_module
from epo_lab.base.errors import UserError
from epo_lab.runner.runner import EpoRunner
from support.distributed import run_in_two_processes
from support.equality import assert_same
from support.toy_env import ToyEnv, settings

pytestmark = pytest.mark.integration

POLICIES, ENVS_EACH, ITERATIONS = 8, 3, 8
OPTIONS = {
    "class_name": "epo_lab.algorithms:PBT",
    "num_agents": POLICIES,
    "normalize_value": True,
    "bounds_loss_coef": 1e-3,
    "pbt__interval_steps": 16,
    "pbt__start_after_steps": 16,
    "pbt__initial_delay_steps": 16,
    "pbt__threshold_std": 0.0,
    "pbt__threshold_abs": 0.0,
    "pbt__mutation_rate": 0.5,
}


class SameEnv(ToyEnv):
    """All environments are the same and draw nothing, so that it does not matter which of them a policy has."""

    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.max_episode_length = 4
        self._state = torch.zeros(num_envs, 5)

    def step(self, actions):
        rewards = 1.0 - (actions - 0.5).square().mean(dim=-1)
        self._state = 0.8 * self._state
        self._state[:, :3] += 0.1 * actions.clamp(-1, 1)
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.max_episode_length
        self._state = torch.where(dones.unsqueeze(-1), 0.0, self._state)
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        obs = TensorDict({"policy": self._state.clone()}, batch_size=[self.num_envs])
        return obs, rewards, dones.long(), {"time_outs": dones}


def draw_by_slot(slots, policies):
    """Let every policy draw from a stream of its own.

    As it is, the policies of a process share one: this alone makes a divided population another than a whole one.
    """
    for slot, policy in zip(slots, policies, strict=True):
        for name in ("act", "update"):
            method, count = getattr(policy, name), iter(range(1, 10_000))

            def seeded(*args, method=method, count=count, slot=slot):
                torch.manual_seed(1000 * next(count) + slot)
                return method(*args)

            setattr(policy, name, seeded)


def train(rank, world, folder=None):
    """Train and return what the policies of this process hold in the end."""
    construct = pbt_module.construct

    def constructed(obs, env, cfg, device):
        torch.manual_seed(cfg["seed"])
        return construct(obs, env, cfg, device)

    pbt_module.construct = constructed
    try:
        cfg = settings(**OPTIONS) | {"seed": 5 + rank, "save_interval": ITERATIONS}
        runner = EpoRunner(SameEnv(POLICIES * ENVS_EACH // world), cfg, log_dir=folder)
    finally:
        pbt_module.construct = construct
    population = runner.alg
    draw_by_slot(population.slots, population.policies)
    records, add = [], population._log.add
    population._log.add = lambda kind, record: (records.append(record), add(kind, record))
    runner.learn(ITERATIONS)
    return {
        "slots": list(population.slots),
        "states": copy.deepcopy([models(state) for state in population._own_states()]),
        "rule": population.evolution.state_dict(),
        "changes": [change for record in records for change in record["changes"]],
        "scalars": population.scalars(),
        "ranked": population._ranked,
    }


def models(state):
    kept = ("actor_state_dict", "critic_state_dict", "optimizer_state_dict", "rate", "settings")
    return {name: state[name] for name in kept} | {"values": state["parts"]["value_normalizer"]}


def both(rank):
    import tempfile

    folder = [tempfile.mkdtemp()]
    torch.distributed.broadcast_object_list(folder, src=0)
    result = train(rank, 2, folder[0])
    result["folder"] = folder[0]
    return result


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_in_two_processes(both, tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="module")
def whole():
    torch.set_num_threads(1)
    return train(0, 1)


def test_policies_are_divided_and_decisions_are_common(results):
    first, second = results
    assert first["slots"] == [0, 1, 2, 3] and second["slots"] == [4, 5, 6, 7]
    for key in ("rule", "ranked", "scalars"):
        assert_same(first[key], second[key], key)
    assert first["rule"]["events"] > 0


def test_two_processes_do_to_the_bit_what_one_does(results, whole):
    assert_same([state for result in results for state in result["states"]], whole["states"])
    assert_same(results[0]["rule"], whole["rule"])
    assert_same(results[0]["ranked"], whole["ranked"])


def test_the_checkpoint_of_the_first_process_holds_all_policies(results):
    cfg = settings(**OPTIONS)
    runner = EpoRunner(SameEnv(POLICIES * ENVS_EACH), cfg)
    runner.load(f"{results[0]['folder']}/model_{ITERATIONS - 1}.pt")
    best = results[0]["ranked"][0]
    states = [state for result in results for state in result["states"]]
    assert_same(dict(runner.alg.policies[0].actor.state_dict()), dict(states[best]["actor_state_dict"]))
    runner.resume(f"{results[0]['folder']}/model_{ITERATIONS - 1}.pt")
    assert_same([models(state) for state in runner.alg._own_states()], states)


def test_weights_went_from_process_to_process(results, whole):
    changes = results[1]["changes"]
    assert changes == whole["changes"]
    assert any(change["policy"] // 4 != change["weights_from"] // 4 for change in changes)


def test_processes_that_cannot_divide_the_policies_are_refused():
    cfg = settings(**OPTIONS) | {"multi_gpu": {"global_rank": 0, "local_rank": 0, "world_size": 3}}
    env = ToyEnv(24)
    with pytest.raises(UserError, match="3 processes cannot divide 8 policies"):
        pbt_module.PBT.construct_algorithm(env.get_observations(), env, cfg, "cpu")
