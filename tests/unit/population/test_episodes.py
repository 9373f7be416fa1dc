"""Episodes worked out for many steps at once are those that one finds step by step."""

import pytest
import torch

from epo_lab.base.keys import BROKEN
from epo_lab.population.episodes import ROWS, EpisodeNotes

pytestmark = pytest.mark.unit


class StepByStep:
    """The same by hand: one environment after the other, one step after the other."""

    def __init__(self, num_envs):
        self.returns, self.lengths, self.tainted = [0.0] * num_envs, [0] * num_envs, [True] * num_envs

    def step(self, rewards, dones, broken):
        """Return (ended, whole, return, length) of every environment."""
        found = []
        for env, (reward, done, breaks) in enumerate(zip(rewards, dones, broken, strict=True)):
            self.returns[env] += reward
            self.lengths[env] += 1
            ended = done and not breaks
            found.append((ended, ended and not self.tainted[env], self.returns[env], self.lengths[env]))
            if done:
                self.returns[env], self.lengths[env], self.tainted[env] = 0.0, 0, False
            if breaks:
                self.tainted[env] = True
        return found


@pytest.mark.parametrize("breaks", [None, 0.1, 1.0])
@pytest.mark.parametrize("ends", [0.0, 0.05, 0.5, 1.0])
def test_many_steps_at_once_are_one_after_the_other(ends, breaks):
    generator = torch.Generator().manual_seed(3)
    envs = 12
    notes, by_hand = EpisodeNotes(envs, "cpu", with_values=True), StepByStep(envs)
    # pieces of any length, from a step to as many as there is room for
    for count in (1, 5, ROWS, 2, 17, 1):
        expected, values = [], torch.randn(count, envs, generator=generator)
        for step in range(count):
            rewards = torch.randn(envs, generator=generator)
            broken = torch.rand(envs, generator=generator) < (breaks or 0.0)
            dones = (torch.rand(envs, generator=generator) < ends).long()
            extras = {} if breaks is None else {BROKEN: broken}
            notes.step(rewards, dones, extras, values[step])
            expected.append(by_hand.step(rewards.tolist(), dones.bool().tolist(), broken.tolist()))
        assert notes.full == (count == ROWS)
        found = notes.take()
        table = torch.tensor(expected, dtype=torch.float64)
        assert torch.equal(found.ended, table[..., 0].bool())
        assert torch.equal(found.whole, table[..., 1].bool())
        torch.testing.assert_close(found.returns.double(), table[..., 2], rtol=1e-5, atol=1e-5)
        assert torch.equal(found.lengths.double(), table[..., 3])
        assert torch.equal(found.values, values)
        assert notes.tainted.tolist() == by_hand.tainted
    assert notes.take() is None, "nothing is worked out twice"


def test_what_was_cut_off_begins_again():
    notes = EpisodeNotes(2, "cpu")
    notes.tainted.zero_()
    for _ in range(3):
        notes.step(torch.ones(2), torch.zeros(2), {})
    notes.interrupt()
    notes.step(torch.ones(2), torch.tensor([1, 0]), {})
    steps = notes.take()
    assert steps.returns.tolist() == [[1.0, 1.0]] and steps.lengths.tolist() == [[1.0, 1.0]]
    assert steps.ended.tolist() == [[True, False]] and not steps.whole.any()
