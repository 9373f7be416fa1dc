"""What a GPU would feel, felt without one: every agent on a device that refuses strangers and counts who waits."""

from collections import Counter

import pytest
import torch
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from epo_lab.base.options import merge
from epo_lab.configs.presets import agent_preset
from epo_lab.configs.sizes import at_size
from support import off_policy
from support.equality import assert_same
from support.toy_env import ToyEnv, settings
from support.virtual_device import DEVICE, counted, enable, make_generator, moved

pytestmark = pytest.mark.unit

# Note: when the tests are collected, because autograd counts the devices once, at the first backward pass of a process
enable()

ENVS, STEPS, AGENTS = 16, 4, 4
ON_POLICY = ("ppo", "sapg", "sapg_all", "cpo", "pbt", "epo", "epo_paper", "epo_release")
OFF_POLICY = ("sac", "td3", "pql", "es", "cem_rl", "esac")
ALONE = ("stock", "ppo", "sac", "td3", "pql")
EARLY = {
    "evolution": {"warmup_steps": 8, "interval_steps": 4, "floor": 0.0},
    "census_interval": 0,
    "fitness": {"min_coverage": 0.01},
}
"""Generations within a few roll-outs; a census is no part of an ordinary iteration."""
TWO = {"global_rank": 0, "local_rank": 0, "world_size": 2}
ROUNDS = {"num_learning_epochs": 2, "num_mini_batches": 2}
EARLY_CHANGES = {"pbt": {"interval_steps": 4, "start_after_steps": 4, "initial_delay_steps": 4}}


@pytest.fixture(autouse=True)
def virtual_device(monkeypatch):
    monkeypatch.setattr(torch, "Generator", make_generator)


class VirtualEnv(ToyEnv):
    """The toy environment as one that lives on the device."""

    def __init__(self):
        super().__init__(ENVS)
        self.device = DEVICE

    def get_observations(self):
        return TensorDict({"policy": self._state.to(DEVICE)}, batch_size=[ENVS])

    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions.cpu())
        return obs, rewards.to(DEVICE), dones.to(DEVICE), {name: value.to(DEVICE) for name, value in extras.items()}


def make(name, env, device, recurrent=None, **changes):
    """Return an agent of a preset, small."""
    if name == "stock":
        cfg = merge(settings(recurrent), {"algorithm": {"class_name": "rsl_rl.algorithms:PPO", **ROUNDS}})
    elif name in OFF_POLICY:
        own = at_size(agent_preset(name)["algorithm"], "cpu")
        small = {"batch_size": 16, "warmup_steps": 32, "updates_per_step": 1.0, "replay": {"size": 2000}}
        networks = settings(recurrent) if recurrent else off_policy.settings()
        cfg = {**networks, "algorithm": own if name == "es" else merge(own, small)}
    else:
        early = EARLY_CHANGES if name == "pbt" else EARLY
        cfg = settings(recurrent)
        cfg["algorithm"] = merge(
            cfg["algorithm"], ROUNDS, at_size(agent_preset(name)["algorithm"], "cpu"), early, changes
        )
    if name not in ALONE:
        cfg["algorithm"]["num_agents"] = AGENTS
    cfg["num_steps_per_env"] = STEPS
    cfg["multi_gpu"] = TWO if torch.distributed.is_initialized() else None
    torch.manual_seed(0)
    kind = resolve_callable(cfg["algorithm"]["class_name"])
    algorithm = kind.construct_algorithm(env.get_observations(), env, cfg, device)
    algorithm.train_mode()
    return algorithm


def iterate(algorithm, env):
    """Run one iteration and return what waited while acting, while taking in, and while learning."""
    acting, taking_in = Counter(), Counter()
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(STEPS):
            with counted() as found:
                actions = algorithm.act(obs)
            acting += found
            obs, rewards, dones, extras = env.step(actions)
            with counted() as found:
                algorithm.process_env_step(obs, rewards, dones, extras)
            taking_in += found
    with counted() as learning:
        with torch.inference_mode():
            algorithm.compute_returns(obs)
        algorithm.update()
    return acting, taking_in, learning


@pytest.fixture(scope="module")
def budget():
    """Return how often rsl_rl's own PPO waits in its second update, by its network."""
    return {recurrent: sum(trained("stock", recurrent)[1][-1][2].values()) for recurrent in (None, "lstm")}


def trained(name, recurrent=None, iterations=2):
    """Return an agent after some iterations, and what waited in each."""
    env = VirtualEnv()
    algorithm = make(name, env, DEVICE, recurrent)
    return algorithm, [iterate(algorithm, env) for _ in range(iterations)]


QUICK = [(name, None) for name in (*ON_POLICY, *OFF_POLICY)] + [("ppo", "lstm"), ("epo", "lstm"), ("es", "lstm")]
SLOW = [(name, "lstm") for name in ON_POLICY if (name, "lstm") not in QUICK]
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]


@pytest.mark.parametrize(("name", "recurrent"), CASES)
def test_an_agent_lives_on_the_device(name, recurrent, budget):
    algorithm, counts = trained(name, recurrent)

    # Nobody waits in a step, and nobody longer than rsl_rl in an update; policies of PBT learn each as PPO does
    most = budget[recurrent] * (AGENTS if name == "pbt" else 1)
    for acting, taking_in, learning in counts:
        assert not acting, acting
        assert not taking_in, taking_in
        assert sum(learning.values()) <= most, learning
    assert all(p.device == torch.device(DEVICE) for p in algorithm.policy().parameters())

    # Its state goes to the other device and back
    saved = moved(algorithm.save(), "cpu")
    on_cpu = make(name, ToyEnv(ENVS), "cpu", recurrent)
    on_cpu.load(saved, None, True)
    assert_same(moved(on_cpu.save(), "cpu"), saved)
    again = make(name, VirtualEnv(), DEVICE, recurrent)
    again.load(moved(on_cpu.save(), DEVICE), None, True)
    assert_same(moved(again.save(), "cpu"), saved)
    iterate(again, VirtualEnv())

    # What is exported runs where there is no such device
    algorithm.eval_mode()
    policy = algorithm.policy()
    exported = torch.jit.script(policy.as_jit().to("cpu"))
    obs = torch.randn(1, 5)
    with torch.inference_mode():
        policy.reset()
        expected = policy(TensorDict({"policy": obs.to(DEVICE)}, batch_size=[1])).cpu()
        torch.testing.assert_close(exported(obs), expected)


@pytest.mark.parametrize(("name", "recurrent"), [case for case in QUICK if case[0] != "pbt"])
def test_processes_exchange_tensors_of_the_device_only(name, recurrent, monkeypatch):
    """As NCCL demands, which takes none of the CPU; the other process has the same numbers as this one."""
    sent = []

    def all_reduce(values, op=torch.distributed.ReduceOp.SUM):
        sent.append(values.device)
        values.mul_(2 if op == torch.distributed.ReduceOp.SUM else 1)

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    monkeypatch.setattr(torch.distributed, "broadcast", lambda values, src: sent.append(values.device))
    monkeypatch.setattr(torch.distributed, "broadcast_object_list", lambda values, src: None)
    most = sum(trained("stock", recurrent)[1][-1][2].values())
    algorithm, counts = trained(name, recurrent)
    algorithm.broadcast_parameters()
    assert set(sent) == {torch.device(DEVICE)}
    for acting, taking_in, learning in counts:
        assert not acting and not taking_in, acting + taking_in
        # one more in the first: now and then processes compare their genes
        assert sum(learning.values()) <= most + 1, learning


@pytest.mark.parametrize("name", ["epo", "epo_paper", "epo_release", "pbt", "es", "cem_rl", "esac"])
def test_generations_happen_on_the_device(name):
    env = VirtualEnv()
    env.max_episode_length = 4
    algorithm = make(name, env, DEVICE, evolution={"trigger": "interval"} if name.startswith("epo") else {})
    for _ in range(8):
        iterate(algorithm, env)
        if algorithm.scalars().get("Generation/events", 0.0) > 0.0:
            return
    pytest.fail("no generation")


def test_a_census_is_taken_on_the_device():
    env = VirtualEnv()
    algorithm = make("epo", env, DEVICE, census_interval=1)
    iterate(algorithm, env)
    assert algorithm.records()["population"]


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("bool(flags.any())", 1),
        ("values.sum().item()", 1),
        ("values.tolist()", 1),
        ("values.cpu()", 1),
        ("flags.nonzero()", 1),
        ("values[flags]", 1),
        ("values[flags] = rows", 1),
        ("values[flags] = values.sum()", 1),
        ("values[numbers] = 0.0", 1),
        ("torch.tensor([1.0], device=values.device)", 1),
        ("cpu.to(values.device)", 1),
        ("cpu.to(values.device, non_blocking=True)", 0),
        ("values[flags] = 0.0", 0),
        ("values[numbers] = rows", 0),
        ("values * 2.0 + torch.tensor(1.0)", 0),
        ("torch.where(flags, values, 0.0)", 0),
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_the_device_counts_what_waits(code, waits, inference):
    cpu = torch.zeros(3)
    names = {"values": cpu.to(DEVICE), "rows": torch.ones(2).to(DEVICE), "torch": torch, "cpu": cpu}
    names["flags"] = torch.tensor([True, False, True]).to(DEVICE)
    names["numbers"] = torch.tensor([0, 2]).to(DEVICE)
    with torch.inference_mode(inference), counted() as found:
        exec(code, names)
    assert sum(found.values()) == waits, found


@pytest.mark.parametrize("code", ["values + cpu", "values[numbers]", "torch.cat([values, cpu])", "cpu @ values"])
def test_the_device_refuses_tensors_of_the_cpu(code):
    names = {"values": torch.zeros(3).to(DEVICE), "cpu": torch.zeros(3), "torch": torch}
    with pytest.raises(RuntimeError, match="virtual"):
        exec(code, names | {"numbers": torch.tensor([0, 2])})


def test_the_device_draws_from_its_own_generators_only():
    torch.rand(3, generator=make_generator(DEVICE), device=DEVICE)
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, generator=make_generator("cpu"), device=DEVICE)


def test_the_device_computes_what_the_cpu_does():
    results = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        network = torch.nn.LSTM(5, 7).to(device)
        output, _ = network(torch.randn(6, 4, 5).to(device))
        output.square().sum().backward()
        results.append([output.detach().cpu(), *(p.grad.cpu() for p in network.parameters())])
    torch.testing.assert_close(*results)
