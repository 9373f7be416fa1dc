import numpy as np
import pytest

from epo_lab.commands.video import draw_lines, tile, write_gif

pytestmark = pytest.mark.unit


def test_pictures_are_tiled_row_by_row():
    pictures = np.arange(3, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 3, 3), np.uint8)
    grid = tile(pictures)
    assert grid.shape == (4, 6, 3)
    assert grid[0, 0, 0] == 0 and grid[0, 3, 0] == 1 and grid[2, 0, 0] == 2 and grid[2, 3, 0] == 0


def test_gif_has_all_frames(tmp_path):
    from PIL import Image

    frames = [np.full((8, 8, 3), 40 * i, np.uint8) for i in range(5)]
    with Image.open(write_gif(frames, tmp_path / "a.gif", fps=25)) as image:
        assert image.n_frames == 5
        assert image.info["duration"] == 40


def test_lines_are_drawn_where_they_can_be_seen():
    pictures = np.zeros((2, 10, 20, 3), np.uint8)
    lines = np.array([[[[2, 5], [12, 5]]], [[[2, 5], [np.nan, 5]]]], dtype=float)
    drawn = draw_lines(pictures, lines, (0, 0, 255))
    assert drawn[0, 5, 2:13, 2].min() == 255 and drawn[0, 0].max() == 0 and drawn[0, 5, 15:].max() == 0
    assert drawn[1].max() == 0, "half of this line is behind the camera"
    assert pictures.max() == 0
