"""The set of cuboids against the numbers of the specification."""

import numpy as np
import pytest

from epo_tasks.allegro_kuka.cuboids import DENSITY, EDGE, FAMILIES, cuboid_scales

pytestmark = pytest.mark.unit


def test_sizes_of_the_families():
    assert {name: len(family.triples()) for name, family in FAMILIES.items()} == {
        "small": 654,
        "big": 248,
        "sticks": 45,
    }


def test_full_list_has_the_stated_order():
    scales = cuboid_scales()
    first = [(4, 0.75, 1), (1, 2.5, 1), (1.25, 0.66, 3), (3, 0.75, 1.1), (2, 1, 3), (1.5, 2.5, 1.25), (3, 0.5, 0.9)]
    assert scales.shape == (947, 3)
    np.testing.assert_allclose(scales[:8], [*first, (1.5, 1.1, 1)])
    np.testing.assert_allclose(scales[-2:], [(1.1, 1.1, 1.5), (1.25, 1, 1.25)])
    assert np.flatnonzero((scales == 1.0).all(axis=1)).tolist() == [238]
    assert len({tuple(sorted(row)) for row in scales.tolist()}) == 194


def test_throw_list_has_the_stated_order():
    scales = cuboid_scales(["small"])
    assert scales.shape == (654, 3)
    np.testing.assert_allclose(scales[:4], [(0.75, 2.5, 0.75), (0.66, 1.25, 2.5), (2.5, 1.1, 0.9), (1.25, 3, 0.66)])
    np.testing.assert_allclose(scales[-2:], [(2.5, 0.9, 0.75), (3, 1.1, 0.5)])


def test_masses():
    mass = DENSITY * (EDGE * cuboid_scales()).prod(axis=1)
    assert mass[0] == pytest.approx(0.05 * 4 * 0.75 * 1)
    assert mass.mean() == pytest.approx(0.159, abs=5e-4)
    assert np.median(mass) == pytest.approx(0.099, abs=5e-4)


def test_a_limit_keeps_the_first():
    np.testing.assert_array_equal(cuboid_scales(limit=5), cuboid_scales()[:5])
