"""What an event of the genetic algorithm leaves alone and what it changes (invariants 20, 28, 29, 30, 31)."""

import pytest
import torch
from torch import nn

from epo_lab.algorithms.on_policy.genome import GeneTable
from epo_lab.population.evolution import Child, Generation, apply
from support.equality import assert_same
from support.toy_env import ToyEnv, make, settings, train

pytestmark = pytest.mark.integration

EVOLVING = {
    "num_agents": 8,
    "genes__dim": 6,
    "evolution__trigger": "interval",
    "evolution__warmup_steps": 40,
    "evolution__interval_steps": 16,
}


def snapshot(algorithm):
    state = algorithm.optimizer.state
    tables = {"genes": algorithm.actor.genes, "log_std": algorithm.actor.distribution.log_std_param}
    rows = {
        f"{name}.{key}": value.clone()
        for name, table in tables.items()
        for key, value in {"value": table.detach(), **{k: state[table][k] for k in ("exp_avg", "exp_avg_sq")}}.items()
    }
    shared = {name: p.detach().clone() for name, p in algorithm.actor.mlp.named_parameters()}
    shared |= {f"critic.{name}": p.detach().clone() for name, p in algorithm.critic.named_parameters()}
    shared |= {f"buffer.{name}": b.clone() for name, b in algorithm.actor.named_buffers()}
    return rows, shared


def test_an_event_changes_only_the_childs_rows():
    env = ToyEnv()
    algorithm = make(env, settings(**EVOLVING))
    pairs = []

    def watched():
        before = snapshot(algorithm)
        type(algorithm).evolve(algorithm)
        pairs.append((before, snapshot(algorithm), list(algorithm.evolution.births)))

    algorithm.evolve = watched
    identity = id(algorithm.actor.genes)
    train(algorithm, env, 20)
    events = [(b, a) for (b, a, _) in pairs if not torch.equal(b[0]["genes.value"], a[0]["genes.value"])]
    assert len(events) >= 4 and algorithm.evolution.events == len(events)
    for (rows, shared), (new_rows, new_shared) in events:
        assert_same(shared, new_shared)
        changed = (rows["genes.value"] != new_rows["genes.value"]).any(dim=1).nonzero().flatten().tolist()
        assert len(changed) == 1 and changed != [0]
        (child,) = changed
        others = [slot for slot in range(8) if slot != child]
        for name, before in rows.items():
            assert torch.equal(before[others], new_rows[name][others]), name
        assert not new_rows["genes.exp_avg"][child].any() and new_rows["genes.exp_avg_sq"][child].all()
    assert id(algorithm.actor.genes) == identity
    assert any(
        parameter is algorithm.actor.genes
        for group in algorithm.optimizer.param_groups
        for parameter in group["params"]
    )
    before = algorithm.actor.genes.detach().clone()
    train(algorithm, env, 1)
    assert (algorithm.actor.genes != before).any(dim=1).all(), "every gene goes on learning"


def test_a_childs_first_steps_are_no_longer_than_others():
    """Under a constant gradient of the parents' usual size; zeroing both moments would give over five times that."""
    lr, size = 1e-3, 0.5

    def longest_step(zero_both: bool) -> float:
        table = nn.Parameter(torch.zeros(4, 3))
        optimizer = torch.optim.Adam([table], lr=lr)
        signs = torch.randint(0, 2, (2000, 4, 3), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
        for sign in signs:
            table.grad = size * sign
            optimizer.step()
        apply(Generation([Child(3, (1, 2), torch.zeros(3))], {}), GeneTable(table, None, optimizer))
        if zero_both:
            optimizer.state[table]["exp_avg_sq"][3] = 0.0
        longest = 0.0
        for _ in range(50):
            before = table.detach()[3].clone()
            table.grad = torch.full((4, 3), size)
            optimizer.step()
            longest = max(longest, float((table.detach()[3] - before).abs().max()))
        return longest

    assert longest_step(zero_both=False) <= 1.1 * lr
    assert longest_step(zero_both=True) > 5.0 * lr


def test_children_take_the_mean_noise_of_their_parents():
    table, log_std = nn.Parameter(torch.arange(12.0).view(4, 3)), nn.Parameter(torch.arange(8.0).view(4, 2))
    optimizer = torch.optim.Adam([table, log_std], lr=0.1)
    (table.sum() + log_std.sum()).backward()
    optimizer.step()
    noise = log_std.detach().clone()
    apply(Generation([Child(1, (2, 3), torch.full((3,), 7.0))], {}), GeneTable(table, log_std, optimizer))
    torch.testing.assert_close(log_std[1], (noise[2] + noise[3]) / 2)
    assert torch.equal(log_std[[0, 2, 3]], noise[[0, 2, 3]])
    assert (table[1] == 7.0).all()


def test_fitness_is_the_raw_return():
    """Reward scale, time-out bootstrap and the values of the critic do not change it."""
    results = []
    for options in ({}, {"reward_scale": 0.01, "normalize_value": True, "gamma": 0.5}):
        env = ToyEnv()
        # with a learning rate of zero both runs act alike
        algorithm = make(
            env, settings(num_agents=4, evolution__trigger="off", learning_rate=0.0, schedule="fixed", **options)
        )
        train(algorithm, env, 8)
        results.append(algorithm.fitness.compute().values)
    assert not results[0].isnan().any()
    torch.testing.assert_close(*results)


def test_same_seed_same_lineage():
    lineages = []
    for _ in range(2):
        env = ToyEnv()
        algorithm = make(env, settings(**EVOLVING))
        train(algorithm, env, 20)
        lineages.append(algorithm.records()["lineage"])
    assert lineages[0] == lineages[1] and len(lineages[0]) >= 4
