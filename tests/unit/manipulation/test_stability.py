"""What counts as deep in the table, and as having passed through it."""

import pytest
import torch

from epo_tasks.manipulation.allegro_kuka.stability import TableWatch

pytestmark = pytest.mark.unit

ON, IN, UNDER = (0.0, 0.0, 0.56), (0.0, 0.0, 0.40), (0.0, 0.0, 0.20)
BESIDE, BESIDE_BELOW = (0.3, 0.0, 0.56), (0.3, 0.0, 0.40)


@pytest.mark.parametrize(
    ("path", "inside", "through"),
    [
        ([ON, ON], 0, 0),
        ([ON, IN, IN, ON], 2, 0),  # pressed in, pushed out
        ([ON, IN, UNDER], 1, 1),
        ([ON, IN, BESIDE_BELOW], 1, 1),  # out at a side
        ([ON, UNDER, UNDER], 0, 1),  # within a step
        ([ON, BESIDE, BESIDE_BELOW], 0, 0),  # pushed off
        ([BESIDE_BELOW, UNDER], 0, 0),  # flew under it
        ([ON, (0.2, 0.0, 0.525)], 0, 0),  # lies flat
    ],
)
def test_paths(path, inside, through):
    watch = TableWatch(1, (0.2375, 0.2))
    no = torch.tensor([False])
    looks = [watch.look(torch.tensor([place]), no, no) for place in path]
    assert (sum(int(look[0]) for look in looks), sum(int(look[1]) for look in looks)) == (inside, through)


@pytest.mark.parametrize(("dropped", "through"), [(True, 1), (False, 0)])
def test_end_of_an_episode(dropped, through):
    watch = TableWatch(1, (0.2375, 0.2))
    no, yes = torch.tensor([False]), torch.tensor([True])
    watch.look(torch.tensor([IN]), no, no)
    # the place is already that of the next episode
    assert int(watch.look(torch.tensor([ON]), yes, torch.tensor([dropped]))[1]) == through
