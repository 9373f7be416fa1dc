"""Critic targets and value normalisation (invariants 17, 19)."""

import pytest
import torch

from epo_lab.algorithms.on_policy.targets import gae_returns, nstep_returns
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
