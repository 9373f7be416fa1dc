"""Targets and losses of off-policy learning against loops, hand-computed numbers and numerical derivatives."""

import math

import numpy as np
import pytest
import torch

from epo_lab.algorithms.off_policy.losses import (
    REDUCTIONS,
    cross_entropy_loss,
    distribution_target,
    policy_loss,
    project,
    squared_loss,
    td_target,
    temperature_loss,
)
from epo_lab.models.squashed import squash

pytestmark = pytest.mark.unit


def projected_by_loop(values, probabilities, atoms):
    """Share every mass between its two neighbours, atom by atom."""
    result = np.zeros((len(values), len(atoms)))
    step = atoms[1] - atoms[0]
    for row in range(len(values)):
        for value, mass in zip(values[row], probabilities[row], strict=True):
            value = min(max(value, atoms[0]), atoms[-1])
            for index, atom in enumerate(atoms):
                result[row, index] += mass * max(0.0, 1.0 - abs(value - atom) / step)
    return result


def test_the_projection_equals_a_loop_over_atoms():
    generator = torch.Generator().manual_seed(0)
    atoms = torch.linspace(-5, 5, 21, dtype=torch.float64)
    # far beyond both ends too
    values = 14 * torch.rand(40, 21, generator=generator, dtype=torch.float64) - 7
    masses = torch.rand(40, 21, generator=generator, dtype=torch.float64).softmax(-1)
    found = project(values, masses, atoms)
    np.testing.assert_allclose(found, projected_by_loop(values.numpy(), masses.numpy(), atoms.numpy()), atol=1e-12)
    torch.testing.assert_close(found.sum(-1), torch.ones(40, dtype=torch.float64))


def test_a_mass_on_an_atom_goes_there_once():
    atoms = torch.linspace(-2, 2, 5)
    values = torch.tensor([[-2.0, -1.0, 0.0, 1.0, 2.0], [2.0, 2.0, 9.0, -9.0, -2.0]])
    masses = torch.tensor([[0.1, 0.2, 0.3, 0.25, 0.15], [0.1, 0.2, 0.3, 0.25, 0.15]])
    found = project(values, masses, atoms)
    torch.testing.assert_close(found[0], masses[0])
    torch.testing.assert_close(found[1], torch.tensor([0.4, 0.0, 0.0, 0.0, 0.6]))


def test_a_scalar_target_by_hand():
    rewards, discounts = torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0.9, 0.0, 0.81])
    values = torch.tensor([[2.0, 2.0, -1.0], [3.0, 3.0, -2.0]])
    # entropy bonus -alpha log pi with alpha 0.2 and log pi -1.5, -1.5, 2
    bonus = -0.2 * torch.tensor([-1.5, -1.5, 2.0])
    expected = [1 + 0.9 * (2 + 0.3), 1.0, 1 + 0.81 * (-2 - 0.4)]
    assert td_target(rewards, discounts, values, bonus).tolist() == pytest.approx(expected)


def test_a_distributional_target_is_the_smaller_one_shifted():
    atoms = torch.linspace(-4, 4, 9)
    low, high = torch.full((9,), -30.0), torch.full((9,), -30.0)
    low[4], high[6] = 0.0, 0.0  # all mass at 0 and at 2
    logits = torch.stack([torch.stack([high, low]), torch.stack([low, high])])
    rewards, discounts = torch.tensor([1.0, -1.5]), torch.tensor([0.5, 0.0])
    found = distribution_target(rewards, discounts, logits, atoms, torch.tensor([2.0, 100.0]))
    # 1 + 0.5 (0 + 2) = 2; after a termination the reward alone, between -2 and -1
    expected = torch.zeros(2, 9)
    expected[0, 6] = 1.0
    expected[1, 2] = expected[1, 3] = 0.5
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_the_distributional_target_has_the_scalar_targets_mean():
    generator = torch.Generator().manual_seed(1)
    atoms = torch.linspace(-5, 5, 101, dtype=torch.float64)
    logits = torch.randn(2, 64, 101, generator=generator, dtype=torch.float64)
    rewards = torch.randn(64, generator=generator, dtype=torch.float64)
    means = (logits.softmax(-1) * atoms).sum(-1)
    discounts = torch.full((64,), 0.3, dtype=torch.float64)
    bonus = 0.1 * torch.randn(64, generator=generator, dtype=torch.float64)
    found = (distribution_target(rewards, discounts, logits, atoms, bonus) * atoms).sum(-1)
    torch.testing.assert_close(found, td_target(rewards, discounts, means, bonus))


def test_losses_by_hand():
    weights = torch.tensor([1.0, 0.0])
    values, targets = torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([2.0, 100.0])
    assert squared_loss(values, targets, weights).item() == pytest.approx(0.5 * (0.5 * 1 + 0.5 * 1))
    logits = torch.log(torch.tensor([[[0.25, 0.75], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]))
    distribution = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    expected = 0.5 * (-math.log(0.75)) + 0.5 * (-math.log(0.5))
    assert cross_entropy_loss(logits, distribution, weights).item() == pytest.approx(expected)
    assert policy_loss(torch.tensor([2.0, 9.0]), weights, torch.tensor([0.5, 9.0])).item() == pytest.approx(-0.75)
    both = policy_loss(torch.tensor([[2.0, 9.0], [4.0, 9.0]]), weights)
    assert both.item() == pytest.approx(-1.0 - 2.0), "losses of several policies add up"


def test_what_becomes_of_two_values():
    values = torch.tensor([[1.0, 4.0], [3.0, 2.0]])
    found = {name: reduce(values).tolist() for name, reduce in REDUCTIONS.items()}
    assert found == {"min": [1.0, 2.0], "mean": [2.0, 3.0], "first": [1.0, 4.0]}


@pytest.mark.parametrize(("entropy", "rises"), [(-5.0, True), (3.0, False)])
def test_the_temperature_rises_if_the_entropy_is_too_low(entropy, rises):
    log_temperature = torch.zeros((), requires_grad=True)
    log_probs = torch.full((8,), -entropy)
    (gradient,) = torch.autograd.grad(
        temperature_loss(log_temperature, log_probs, -2.0, torch.ones(8)), log_temperature
    )
    assert (-gradient > 0) == rises
    # derivative of -log alpha (log pi + target)
    assert gradient.item() == pytest.approx(-(-entropy - 2.0))


def test_the_log_probability_is_that_of_a_numerical_change_of_variables():
    # the density of a = tanh(u) from the distribution function of u, by a central difference
    mean, log_std = torch.tensor([0.3], dtype=torch.float64), torch.tensor([-0.4], dtype=torch.float64)
    normal = torch.distributions.Normal(mean, log_std.exp())
    for noise in (-2.0, -0.5, 0.0, 1.0, 2.5):
        action, log_prob = squash(mean, log_std, torch.tensor([noise], dtype=torch.float64))
        width = 1e-5 * (1 - action.square())
        density = (normal.cdf(torch.atanh(action + width)) - normal.cdf(torch.atanh(action - width))) / (2 * width)
        assert log_prob.item() == pytest.approx(density.log().item(), abs=1e-7)


def test_the_log_probability_is_that_of_torchs_own_distribution_and_finite_far_out():
    generator = torch.Generator().manual_seed(0)
    mean, log_std, noise = torch.randn(3, 500, 4, generator=generator, dtype=torch.float64)
    _, log_prob = squash(mean, log_std, noise)
    normal = torch.distributions.Normal(mean, log_std.exp())
    squashed = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform(cache_size=1))
    inner = mean + log_std.exp() * noise
    expected = squashed.log_prob(squashed.transforms[0](inner)).sum(-1)
    torch.testing.assert_close(log_prob, expected)
    far = torch.tensor([60.0], requires_grad=True)
    _, log_prob = squash(far, torch.zeros(1), torch.zeros(1))
    (gradient,) = torch.autograd.grad(log_prob, far)
    assert log_prob.isfinite() and gradient.item() == pytest.approx(2.0)
