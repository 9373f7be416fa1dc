"""The field of tracks: seeds, mesh, goals in the world, edges, and look-ups against rays."""

import numpy as np
import pytest
import torch
from isaaclab.utils.warp import convert_to_warp_mesh, raycast_mesh

from epo_tasks.parkour.terrain.generator import ParkourTerrainGenerator, column_types
from epo_tasks.parkour.terrain.height_field import HeightField, edge_mask
from epo_tasks.parkour.terrain.terrain_cfg import ParkourTerrainGeneratorCfg

pytestmark = pytest.mark.unit

ROWS = 3


def make(rows: int, **changes) -> ParkourTerrainGenerator:
    return ParkourTerrainGenerator(ParkourTerrainGeneratorCfg(num_rows=rows, num_cols=5, **changes))


@pytest.fixture(scope="module")
def field() -> ParkourTerrainGenerator:
    return make(ROWS)


def test_columns_are_equal_blocks_of_the_types_in_order():
    kinds = ["stones", "hurdles", "flat", "steps", "gaps"]
    for count in (5, 20, 40):
        assert column_types(kinds, count) == [kind for kind in kinds for _ in range(count // 5)]


def test_the_field_depends_on_its_seed_alone():
    field = make(1)
    np.random.random(5)  # noqa: NPY002 (the global generator must not matter)
    same, other = make(1), make(1, seed=1)
    torch.testing.assert_close(same.height_field.heights, field.height_field.heights)
    torch.testing.assert_close(same.flat_patches["goals"], field.flat_patches["goals"])
    assert (other.height_field.heights != field.height_field.heights).float().mean() > 0.5


def test_no_two_tracks_of_one_type_are_alike():
    field = ParkourTerrainGenerator(ParkourTerrainGeneratorCfg(num_rows=2, num_cols=10, horizontal_scale=0.1))
    tiles = field.height_field.heights[:-1, :-1].reshape(2, 180, 10, 40).permute(0, 2, 1, 3)
    for first in range(0, 10, 2):
        assert not torch.equal(tiles[0, first], tiles[0, first + 1])
        assert not torch.equal(tiles[0, first], tiles[1, first])


def test_goals_and_starts_lie_in_their_tiles(field):
    goals = field.flat_patches["goals"]
    assert goals.shape == (ROWS, 5, 8, 3)
    for row in range(ROWS):
        for column in range(5):
            corner = torch.tensor([row * 18.0 - ROWS * 9.0, column * 4.0 - 10.0])
            local = goals[row, column, :, :2] - corner
            assert (local >= 0).all() and (local <= torch.tensor([18.0, 4.0])).all()
            start = torch.as_tensor(field.terrain_origins[row, column])
            torch.testing.assert_close(start[:2].float() - corner, torch.tensor([1.0, 2.0]))
            assert start[2] == 0.0


def test_the_mesh_covers_field_and_border(field):
    low, high = field.terrain_mesh.bounds
    np.testing.assert_allclose(high[:2], [ROWS * 9.0 + 5.0, 15.0], atol=1e-4)
    np.testing.assert_allclose(low[:2], [-ROWS * 9.0 - 5.0, -15.0], atol=1e-4)
    assert len(field.terrain_mesh.faces) == pytest.approx(2 * ROWS * 5 * 360 * 80, abs=100)


def test_heights_are_those_that_rays_meet_on_the_mesh(field):
    generator = torch.Generator().manual_seed(0)
    extent = torch.tensor([ROWS * 9.0 - 0.1, 9.9])
    points = (2.0 * torch.rand(20_000, 2, generator=generator) - 1.0) * extent
    mesh = convert_to_warp_mesh(field.terrain_mesh.vertices, field.terrain_mesh.faces, device="cpu")
    starts = torch.cat([points, torch.full((len(points), 1), 5.0)], dim=-1)
    hits = raycast_mesh(starts, torch.tensor([0.0, 0.0, -1.0]).expand_as(starts), mesh)[0][:, 2]
    difference = (field.height_field.surface(points) - hits).abs()
    assert (difference < 1e-4).float().mean() > 0.95
    # next to vertical faces the mesh is drawn out by a cell, so that roughness is met half a cell off
    assert (difference < 0.03).float().mean() > 0.995


def test_surface_is_a_plane_on_a_slope_and_low_before_a_face():
    slope = HeightField(np.arange(5)[:, None] * 2 + np.arange(4)[None], 0.5, 0.01, 0.5, "cpu")
    points = torch.tensor([[0.13, -0.3], [-0.9, 0.6], [0.99, 0.74]])
    expected = (points[:, 0] + 1.0) / 0.5 * 0.02 + (points[:, 1] + 0.75) / 0.5 * 0.01
    torch.testing.assert_close(slope.surface(points), expected)
    torch.testing.assert_close(slope.surface(torch.tensor([[9.0, 9.0]])), torch.tensor([0.11]))
    wall = HeightField(np.array([[0, 0], [0, 0], [50, 50], [50, 50]]), 0.1, 0.01, 0.15, "cpu")
    x = torch.tensor([-0.1, 0.0, 0.04, 0.06, 0.1])
    points = torch.stack([x, torch.zeros(5)], dim=-1)
    torch.testing.assert_close(wall.surface(points), torch.tensor([0.0, 0.0, 0.0, 0.5, 0.5]))


def test_edges_are_bands_of_three_points_around_the_foot_of_a_face():
    line = np.zeros((20, 2), dtype=np.int16)
    line[8:13] = 16
    assert np.flatnonzero(edge_mask(line, 15.0)[:, 0]).tolist() == [6, 7, 8, 12, 13, 14]
    line[8:13] = 15
    assert not edge_mask(line, 15.0).any(), "a jump of exactly 0.075 m is none"
    across = np.zeros((4, 20), dtype=np.int16)
    across[:, 8:13] = 100
    assert not edge_mask(across, 15.0).any(), "faces along y do not count"


def test_edges_are_found_below_feet(field):
    heights = field.height_field.heights
    marked = field.height_field.edges.nonzero()[::997]
    points = (marked - torch.tensor(heights.shape) / 2 + 0.5) * 0.05
    assert len(marked) > 10
    assert field.height_field.at_edge(points + 0.02).all()
    flat = torch.tensor([[-ROWS * 9.0 + 9.0, 0.5]])
    assert not field.height_field.at_edge(flat).any()
