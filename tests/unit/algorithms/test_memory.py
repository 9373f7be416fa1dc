"""What an agent holds, by part, against all tensors that torch has."""

import gc

import pytest
import torch
from rsl_rl.utils import resolve_callable

from epo_lab.algorithms.stock import StockAlgorithm
from epo_lab.base.memory import held_bytes
from epo_lab.base.options import merge
from epo_lab.configs.presets import agent_preset
from epo_lab.configs.sizes import at_size
from support import off_policy
from support.toy_env import ToyEnv, settings, train

pytestmark = pytest.mark.unit

OFF_POLICY = ("sac", "td3", "pql", "es", "cem_rl", "esac")
WIDE = {"actor": {"hidden_dims": [256, 256]}, "critic": {"hidden_dims": [256, 256]}}


def live_bytes():
    """Return the bytes of all tensors that were made since ``gc.freeze()`` and are alive."""
    gc.collect()
    alive = [value for value in gc.get_objects() if type(value) in (torch.Tensor, torch.nn.Parameter)]
    grads = [value.grad for value in alive if value.is_leaf and value.grad is not None]
    memory = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in [*alive, *grads]}
    return sum(memory.values())


def make(name, env, **changes):
    if name in OFF_POLICY:
        own = at_size(agent_preset(name)["algorithm"], "cpu")
        small = {"batch_size": 32, "warmup_steps": 64, "replay": {"size": 20_000}}
        cfg = {**off_policy.settings(), "algorithm": own if name == "es" else merge(own, small)}
        if name in ("es", "cem_rl", "esac"):
            cfg["algorithm"]["num_agents"] = 8
    elif name == "stock":
        cfg = merge(settings(), {"algorithm": {"class_name": "rsl_rl.algorithms:PPO"}})
    else:
        cfg = merge(settings(), {"algorithm": at_size(agent_preset(name)["algorithm"], "cpu")})
    cfg = merge(cfg, WIDE, changes)
    kind = resolve_callable(cfg["algorithm"]["class_name"])
    algorithm = kind.construct_algorithm(env.get_observations(), env, cfg, "cpu")
    return StockAlgorithm(algorithm, 8) if name == "stock" else algorithm


@pytest.mark.parametrize("name", ["stock", "ppo", "epo", "cpo", "pbt", *OFF_POLICY])
def test_the_parts_are_what_torch_holds(name):
    env = ToyEnv(240)
    # what is there already, such as the modules of all other tests, is not looked at
    gc.freeze()
    algorithm = make(name, env)
    algorithm.train_mode()
    train(algorithm, env, 2)
    held = {part: held_bytes(*owners) for part, owners in algorithm.memory().items()}
    storage = "replay" if name in OFF_POLICY else "storage"
    assert set(held) == ({"networks"} if name == "es" else {"networks", "optimizer", storage})
    everything = live_bytes()
    # fitness, meters and the state of the environments are small
    assert 0.85 * everything < sum(held.values()) <= everything, (held, everything)
    # gradients are as large as parameters; Adam keeps two numbers for each
    parameters = {p for model in algorithm.memory()["networks"][:1] if name != "pbt" for p in model.parameters()}
    if parameters and name != "es":
        assert held["networks"] >= 2 * sum(p.nbytes for p in parameters)
        assert held["optimizer"] >= 2 * sum(p.nbytes for p in parameters)


def test_memory_that_two_share_counts_once():
    tensor = torch.zeros(1000)
    assert held_bytes([tensor, tensor.view(10, 100)], {"again": tensor[:5]}) == 4000
