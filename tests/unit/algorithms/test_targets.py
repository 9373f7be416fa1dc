"""Critic targets and value normalisation (invariants 17, 19)."""

import pytest
import torch

from epo_lab.algorithms.on_policy.targets import gae_returns, nstep_returns, vtrace_advantages
from epo_lab.algorithms.on_policy.value_normalizer import ValueNormalizer

pytestmark = pytest.mark.unit


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(2, 12, 20, 1, generator=generator)
    dones = (torch.rand(12, 20, 1, generator=generator) < 0.15).byte()
    return rewards, values, dones, torch.randn(20, 1, generator=generator)


def by_hand(data, gamma, horizon):
    """Sum rewards up one by one, until the horizon, the end of the roll-out, or a done."""
    rewards, values, dones, last = data
    out = torch.zeros_like(rewards)
    steps, envs = rewards.shape[:2]
    for env in range(envs):
        for start in range(steps):
            total, weight, step = 0.0, 1.0, start
            while True:
                total += weight * float(rewards[step, env])
                weight *= gamma
                if dones[step, env]:
                    break
                step += 1
                if step == start + horizon or step == steps:
                    total += weight * float(last[env] if step == steps else values[step, env])
                    break
            out[start, env] = total
    return out


@pytest.mark.parametrize("horizon", [1, 3, 5, 12])
def test_nstep_targets_equal_sums_by_hand(data, horizon):
    out = torch.zeros_like(data[0])
    nstep_returns(*data, 0.97, horizon, out=out)
    torch.testing.assert_close(out, by_hand(data, 0.97, horizon), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("horizon", "lam"), [(1, 0.0), (12, 1.0), (50, 1.0)])
def test_nstep_meets_gae_at_both_ends(data, horizon, lam):
    nstep, gae = torch.zeros_like(data[0]), torch.zeros_like(data[0])
    nstep_returns(*data, 0.97, horizon, out=nstep)
    gae_returns(*data, 0.97, lam, out=gae)
    torch.testing.assert_close(nstep, gae, rtol=1e-5, atol=1e-5)


def test_nothing_crosses_a_done(data):
    rewards, values, dones, last = data
    dones.zero_()
    dones[5] = 1
    for compute, argument in ((nstep_returns, 3), (gae_returns, 0.95)):
        before, after = torch.zeros_like(rewards), torch.zeros_like(rewards)
        compute(rewards, values, dones, last, 0.97, argument, out=before)
        changed = rewards.clone()
        changed[6:] += 100.0
        compute(changed, values, dones, last, 0.97, argument, out=after)
        assert torch.equal(before[:6], after[:6])
        assert not torch.equal(before[6:], after[6:])


def relabelled(data):
    """Return data of relabelled columns: rewards, time-outs, dones, behaviour values, values, last values."""
    rewards, values, dones, last = data
    generator = torch.Generator().manual_seed(1)
    time_outs = dones.bool() & (torch.rand(dones.shape, generator=generator) < 0.5)
    return rewards, time_outs, dones, torch.randn(values.shape, generator=generator), values, last


def test_vtrace_of_equal_policies_is_generalised_advantage_estimation(data):
    rewards, time_outs, dones, _, values, last = relabelled(data)
    targets, advantages = vtrace_advantages(
        rewards, time_outs, dones, values, values, last, 0.97, 0.9, torch.ones_like(values)
    )
    returns = torch.zeros_like(values)
    gae_returns(rewards, values, dones, last, 0.97, 0.9, out=returns)
    torch.testing.assert_close(targets, returns, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(advantages, returns - values, rtol=1e-5, atol=1e-5)


def test_vtrace_is_the_sum_of_weighted_errors(data):
    """IMPALA eq. 1, summed forwards: v - V = sum over k of (gamma lambda)^k (prod of min(1, rho)) delta."""
    rewards, time_outs, dones, acted, values, last = relabelled(data)
    generator = torch.Generator().manual_seed(2)
    ratios = torch.exp(torch.randn(values.shape, generator=generator))
    targets, advantages = vtrace_advantages(*relabelled(data), 0.97, 0.9, ratios)
    steps, envs = values.shape[:2]
    for env in range(envs):
        row = [[float(part[step, env]) for step in range(steps)] for part in (rewards, acted, values, ratios)]
        out, cut = time_outs[:, env, 0].tolist(), dones[:, env, 0].tolist()
        after = [*row[2][1:], float(last[env])]
        errors = []
        for r, a, v, next_v, late, done in zip(row[0], row[1], row[2], after, out, cut, strict=True):
            # a time-out is bootstrapped by who acted; the new agent's value belongs there
            errors.append(r + 0.97 * late * (v - a) + (0.0 if done else 0.97 * next_v) - v)
        for start in range(steps):
            total, weight = 0.0, 1.0
            for step in range(start, steps):
                weight *= min(1.0, row[3][step])
                total += weight * errors[step]
                if cut[step]:
                    break
                weight *= 0.97 * 0.9
            assert float(targets[start, env]) == pytest.approx(row[2][start] + total, rel=1e-4, abs=1e-4)
            first = min(1.0, row[3][start])
            assert float(advantages[start, env]) == pytest.approx(total / first, rel=1e-3, abs=1e-3)


def test_vtrace_ends_where_the_new_agent_would_not_have_acted_so(data):
    """With ratios of zero nothing is left of longer horizons."""
    own = relabelled(data)
    zero = torch.zeros_like(data[1])
    short = vtrace_advantages(*own, 0.97, 0.0, torch.ones_like(zero))
    targets, advantages = vtrace_advantages(*own, 0.97, 0.9, zero)
    assert torch.equal(targets, data[1])
    torch.testing.assert_close(advantages, short[1])


def test_value_normalizer_knows_all_it_has_seen():
    generator, normalizer = torch.Generator().manual_seed(0), ValueNormalizer()
    batches = [3.0 + 2.0 * torch.randn(size, generator=generator) for size in (100, 7, 400)]
    for batch in batches:
        normalizer.update(batch)
    everything = torch.cat(batches).double()
    assert float(normalizer.mean) == pytest.approx(everything.mean().item(), rel=1e-9)
    assert float(normalizer.var) == pytest.approx(everything.var(unbiased=False).item(), rel=1e-9)
    values = torch.linspace(-3.0, 9.0, 50)
    torch.testing.assert_close(normalizer.denormalize(normalizer.normalize(values)), values)
    assert normalizer.normalize(torch.tensor(1000.0)) == 5.0
