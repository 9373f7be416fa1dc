"""Our loop beside rsl_rl's (design, promise 1)."""

import pytest
import torch
from rsl_rl.runners import OnPolicyRunner

from epo_lab.runner.runner import EpoRunner
from support.equality import assert_same
from support.toy_env import ToyEnv, settings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_one_agent_learns_the_same_bits_as_with_rsl_rls_runner(recurrent):
    results = []
    for kind, algorithm in ((OnPolicyRunner, "PPO"), (EpoRunner, "epo_lab.algorithms:EPO")):
        cfg = settings(recurrent)
        cfg["algorithm"] |= {"class_name": algorithm} | ({} if algorithm == "PPO" else {"num_agents": 1})
        torch.manual_seed(3)
        runner = kind(ToyEnv(), cfg)
        runner.learn(3, init_at_random_ep_len=True)
        saved = runner.alg.save()
        results.append({name: saved[name] for name in saved if name.endswith("_state_dict")})
    assert len(results[0]) == 3
    assert_same(*results)
