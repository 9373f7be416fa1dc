"""The loss of a mini-batch and the learning rate, against sums by hand (invariants 7, 8, 39)."""

import math

import pytest
import torch

from epo_lab.algorithms.on_policy.census import follower_scalars
from epo_lab.algorithms.on_policy.loss import mini_batch_loss
from epo_lab.algorithms.on_policy.relabel import offpolicy_scalars
from epo_lab.algorithms.on_policy.schedule import KlSchedule
from epo_lab.algorithms.on_policy.terms import Bounds
from epo_lab.storage.batch import Batch

pytestmark = pytest.mark.unit

NEUTRAL = {
    "clip": 0.2,
    "value_coef": 1.0,
    "clip_value": False,
    "entropy_coef": 0.0,
}


def loss(log_prob, old, advantages, *, values=None, returns=None, old_values=None, entropy=None, **options):
    rows = len(log_prob)
    zeros = torch.zeros(rows, 1)
    batch = Batch(
        advantages=advantages.unsqueeze(-1),
        old_actions_log_prob=old.unsqueeze(-1),
        values=zeros if old_values is None else old_values,
        returns=zeros if returns is None else returns,
        weights=options.pop("weights", None),
        labels=options.pop("labels", None),
        relabelled=options.pop("relabelled", None),
    )
    return mini_batch_loss(
        batch,
        log_prob,
        zeros if values is None else values,
        torch.zeros(rows) if entropy is None else entropy,
        **{**NEUTRAL, **options},
    )


def test_eq4_is_ppo_on_the_masters_ratio_weighted_by_mu():
    generator = torch.Generator().manual_seed(0)
    log_b, log_m = torch.randn(2, 1000, generator=generator)
    advantage = torch.randn(1000, generator=generator)
    log_new = log_m + 0.3 * torch.randn(1000, generator=generator)
    mu, eps = torch.exp(log_m - log_b), 0.2
    literal = log_new.clone().requires_grad_()
    r = torch.exp(literal - log_b)
    clipped = torch.minimum(torch.maximum(r, mu * (1 - eps)), mu * (1 + eps))
    objective = torch.min(r * advantage, clipped * advantage)
    objective.mean().backward()
    ours = log_new.clone().requires_grad_()
    result = loss(ours, log_m, mu * advantage)
    result.surrogate.backward()
    torch.testing.assert_close(-result.surrogate_rows, objective, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(-ours.grad, literal.grad, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(("advantage", "ratio", "learns"), [
    (1.0, 1.3, False), (1.0, 1.1, True), (1.0, 0.3, True), (-1.0, 0.7, False), (-1.0, 0.9, True), (-1.0, 9.0, True),
])  # fmt: skip
def test_fixed_clip_has_gradient_exactly_where_it_should(advantage, ratio, learns):
    log_new = torch.tensor([ratio, 1.0]).log().requires_grad_()
    loss(log_new, torch.zeros(2), torch.tensor([advantage, 0.0])).total.backward()
    assert (log_new.grad[0].abs() > 0).item() is learns


@pytest.mark.parametrize(
    ("advantage", "ratio", "relabelled", "learns"),
    [(-1.0, 4.0, True, False), (-1.0, 2.0, True, True), (-1.0, 4.0, False, True), (1.0, 0.5, True, True)],
)
def test_dual_clip_ends_the_gradient_of_relabelled_losses_only(advantage, ratio, relabelled, learns):
    log_prob = torch.tensor([math.log(ratio)], requires_grad=True)
    rows = torch.tensor([relabelled])
    found = loss(log_prob, torch.zeros(1), torch.tensor([advantage]), dual_clip=3.0, relabelled=rows)
    found.surrogate.backward()
    assert bool(log_prob.grad) == learns
    # beyond the bound a row still counts for what it counts at the bound
    expected = -advantage * (ratio if learns else 3.0)
    assert found.surrogate.item() == pytest.approx(expected)


def test_means_beyond_the_bound_are_pulled_back():
    mean = torch.tensor([[1.0, -1.1], [1.6, -2.1], [0.0, 1.2]])
    rows = [0.0, 0.5**2 + 1.0**2, 0.1**2]
    assert Bounds(1e-4).loss(Batch(), mean).item() == pytest.approx(1e-4 * sum(rows) / 3, rel=1e-4)
    weighted = Bounds(1e-4).loss(Batch(weights=torch.tensor([1.0, 0.5, 1.0])), mean)
    assert weighted.item() == pytest.approx(1e-4 * (0.5 * rows[1] + rows[2]) / 3, rel=1e-4)


def test_values_are_clipped_around_those_of_the_roll_out():
    values, old, returns = (torch.tensor(v).unsqueeze(-1) for v in ([2.0, 0.1], [0.0, 0.0], [1.0, 1.0]))
    nothing = torch.zeros(2)
    result = loss(nothing, nothing, nothing, values=values, old_values=old, returns=returns, clip_value=True)
    # near: 0.2 and 0.1; the larger error counts
    assert result.value.item() == pytest.approx((max(1.0, 0.8**2) + 0.9**2) / 2)
    result = loss(nothing, nothing, nothing, values=values, old_values=old, returns=returns, value_coef=2.0)
    assert result.total.item() == pytest.approx(2.0 * (1.0 + 0.9**2) / 2)


def test_entropy_and_weight_go_by_row():
    nothing, entropy = torch.zeros(3), torch.tensor([1.0, 2.0, 4.0])
    table, labels = torch.tensor([0.0, 0.5]), torch.tensor([0, 1, 1])
    result = loss(nothing, nothing, nothing, entropy=entropy, entropy_coef=table, labels=labels)
    assert result.total.item() == pytest.approx(-(0.0 * 1.0 + 0.5 * 2.0 + 0.5 * 4.0) / 3)
    result = loss(nothing, nothing, torch.tensor([1.0, 5.0, 2.0]), weights=torch.tensor([1.0, 0.5, 1.0]))
    assert result.total.item() == pytest.approx(-(1.0 + 0.5 * 5.0 + 2.0) / 3)


def rates(divergences, when, least=1e-6, start=1e-4):
    """Return the rate after each mini-batch, two of which are an epoch."""
    schedule, rate, found = KlSchedule(when, least), start, []
    for number, divergence in enumerate(divergences):
        rate = schedule.adapt(rate, torch.tensor(divergence), 0.016, ends_epoch=number % 2 == 1)
        found.append(rate)
    return found


def test_the_rate_follows_the_mean_divergence_of_an_epoch():
    # means: 0.033 (too far), 0.0079 (hardly at all), 0.016 (right)
    found = rates([0.06, 0.006, 0.0, 0.0158, 0.03, 0.002], "epoch")
    assert found == pytest.approx([1e-4, 1e-4 / 1.5, 1e-4 / 1.5, 1e-4, 1e-4, 1e-4])
    found = rates([0.06, 0.006, 0.0, 0.0158], "minibatch")
    assert found == pytest.approx([1e-4 / 1.5, 1e-4, 1e-4, 1e-4]), "no divergence at all changes nothing"


def test_an_epoch_is_compared_with_the_one_before():
    """rl_games overwrites the policies of a mini-batch at every visit; rsl_rl compares with those that acted."""
    acted, first, second = [(torch.full((3,), value),) for value in (0.0, 1.0, 2.0)]
    for when, expected in (("epoch", [acted, first, acted]), ("minibatch", [acted, acted, acted])):
        schedule = KlSchedule(when, 1e-6)
        visits = [(0, 1, acted, first), (1, 1, acted, second), (0, 1, acted, first)]
        found = [schedule.reference(*visit) for visit in visits]
        assert [params[0][0].item() for params in found] == [params[0][0].item() for params in expected]


def test_the_rate_stays_within_its_bounds():
    assert rates([1.0] * 40, "minibatch", least=1e-6)[-1] == 1e-6
    assert rates([1.0] * 40, "minibatch", least=1e-5)[-1] == 1e-5
    assert rates([1e-4] * 40, "minibatch")[-1] == 1e-2


def test_how_far_the_relabelled_data_are():
    mu = torch.tensor([[0.5, 2.0], [1.0, 0.1]])
    # four agents on eight environments: two columns of two steps are the master's own
    scalars = offpolicy_scalars(mu, torch.full((2, 2), 2.0), own_rows=4.0)
    found = {tag: value.item() for tag, value in scalars.items()}
    assert found["Population/is_deviation"] == pytest.approx((0.5 + 1.0 + 0.0 + 0.9) / 4)
    # the master's own two columns of two steps weigh one each
    weights = [1.0] * 4 + [0.5, 2.0, 1.0, 0.1]
    share = math.fsum(weights) ** 2 / (len(weights) * math.fsum(weight**2 for weight in weights))
    assert found["Population/effective_sample_size"] == pytest.approx(share)
    assert found["Population/kl_to_master"] == pytest.approx(2.0)


def test_how_far_all_followers_are():
    mu = [0.5, 2.0, 1.0, 0.1]
    found = {tag: value.item() for tag, value in follower_scalars(torch.tensor(mu)).items()}
    assert found["Population/is_deviation_all"] == pytest.approx((0.5 + 1.0 + 0.0 + 0.9) / 4)
    share = math.fsum(mu) ** 2 / (len(mu) * math.fsum(weight**2 for weight in mu))
    assert found["Population/effective_sample_size_all"] == pytest.approx(share)
