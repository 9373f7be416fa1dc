"""The track types against the numbers of the specification, measured on the heights that they build."""

import numpy as np
import pytest

from epo_tasks.parkour.terrain.tracks import TRACKS, Grid, build_track, roughness

pytestmark = pytest.mark.unit

H, V = 0.05, 0.005
DRAWS = 60


def draw(kind: str, difficulty: float, count: int = DRAWS, horizontal: float = H):
    """Return heights [m] and goals of many tracks without roughness."""
    tracks = [TRACKS[kind](Grid(horizontal, V, np.random.default_rng(seed)), difficulty) for seed in range(count)]
    return [heights * V for heights, _ in tracks], np.stack([goals for _, goals in tracks])


def runs(line: np.ndarray) -> list[tuple[int, int]]:
    """Return begin and end of every stretch of true points."""
    change = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
    return list(zip(change[::2], change[1::2], strict=True))


@pytest.mark.parametrize("kind", TRACKS)
@pytest.mark.parametrize("difficulty", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("horizontal", [0.05, 0.1])
def test_every_track_has_a_platform_and_eight_goals_inside_it_in_order(kind, difficulty, horizontal):
    heights, goals = draw(kind, difficulty, 40, horizontal)
    assert goals.shape == (40, 8, 2)
    assert (np.diff(goals[..., 0], axis=1) >= 0).all()
    assert (goals >= 0).all() and (goals[..., 0] <= 18.0).all() and (goals[..., 1] <= 4.0).all()
    np.testing.assert_allclose(goals[:, [0, -1], 1], 2.0)
    for height in heights:
        assert height.shape == (round(18 / horizontal), round(4 / horizontal))
        platform = 2.5 if kind != "stones" else 2.0 - 0.1
        assert (height[: round(platform / horizontal)] == 0).all()


@pytest.mark.parametrize(
    ("difficulty", "low", "high", "thickness"), [(0.0, 0.1, 0.15, 0.1), (0.5, 0.15, 0.275, 0.2), (1.0, 0.2, 0.4, 0.4)]
)
def test_hurdles(difficulty, low, high, thickness):
    heights, goals = draw("hurdles", difficulty)
    tops, pitches = [], []
    for height, goal in zip(heights, goals, strict=True):
        bars = runs(height.max(axis=1) > 0)
        assert len(bars) == 6
        for begin, end in bars:
            assert (end - begin) * H == pytest.approx(thickness)
            row = height[begin]
            tops.append(row.max())
            ((left, right),) = runs(row > 0)
            assert 0.8 - 2 * H <= (right - left) * H <= 1.6 + 2 * H
            assert abs((left + right) / 2 * H - 2.0) <= 0.4 + 1e-9
        centres = np.array([(begin + end) / 2 * H for begin, end in bars])
        dx = np.diff(np.concatenate([[2.5], centres]))
        pitches += dx.tolist()
        np.testing.assert_allclose(goal[1:7, 0], centres - dx / 2, atol=1e-9)
    assert min(tops) >= low - 1e-9 and max(tops) < high - 1e-9
    assert min(tops) < low + 0.02 and max(tops) > high - 0.03
    assert min(pitches) >= 1.2 - 1e-9 and max(pitches) < 2.2 - 1e-9


@pytest.mark.parametrize(("difficulty", "step"), [(0.0, 0.1), (0.5, 0.275), (1.0, 0.45)])
def test_steps(difficulty, step):
    heights, goals = draw("steps", difficulty)
    treads = []
    for height, goal in zip(heights, goals, strict=True):
        for index, level in enumerate((1, 2, 3, 3, 2, 1)):
            x, y = (goal[index + 1] / H).astype(int)
            assert height[x, y] == pytest.approx(level * step, abs=V)
        assert goal[0].tolist() == [1.5, 2.0]
        # goals are in the middle of the treads, which lie end to end
        begin = 2.5
        for x in goal[1:7, 0]:
            treads.append(2 * (x - begin))
            begin = 2 * x - begin
        ends = runs(height.max(axis=1) > 0)
        assert len(ends) == 1 and ends[0][1] * H == pytest.approx(begin)
    assert min(treads) >= 0.3 + step - H and max(treads) < 1.5 + step + H


@pytest.mark.parametrize(("difficulty", "width", "pitch"), [(0.0, 0.1, 0.9), (0.5, 0.4, 1.25), (1.0, 0.8, 1.6)])
def test_gaps(difficulty, width, pitch):
    heights, goals = draw("gaps", difficulty)
    depths, pitches = set(), []
    for height, goal in zip(heights, goals, strict=True):
        depth = height.min()
        depths.add(depth)
        trenches = runs((height == depth).all(axis=1))
        assert len(trenches) == 6
        assert all((end - begin) * H == pytest.approx(width) for begin, end in trenches)
        centres = np.array([(begin + end) / 2 * H for begin, end in trenches])
        dx = np.diff(np.concatenate([[2.5], centres]))
        pitches += dx.tolist()
        np.testing.assert_allclose(goal[1:7, 0], centres - dx / 2, atol=1e-9)
        for x, y in (goal[1:7] / H).astype(int):
            assert height[x, y] == 0, "goals are on platforms"
            ((left, right),) = runs(height[x] == 0)
            assert 1.2 - 2 * H <= (right - left) * H <= 2.4 + 2 * H
    assert min(depths) >= -1.0 and max(depths) <= -0.2 and max(depths) - min(depths) > 0.5
    assert min(pitches) >= pitch - 1e-9 and max(pitches) < pitch + 0.7


@pytest.mark.parametrize(
    ("difficulty", "lengths", "free", "side", "bank", "last_bank"),
    [
        (0.0, {1.0}, 0.05, 0.25, 0.0, 0.1),
        (0.5, {0.8}, 0.2, 0.35, 0.125, 0.175),
        (1.0, {0.6, 0.8}, 0.35, 0.4, 0.25, 0.25),
    ],
)
def test_stones(difficulty, lengths, free, side, bank, last_bank):
    heights, goals = draw("stones", difficulty)
    gaps = []
    for height, goal in zip(heights, goals, strict=True):
        length = 2 * (2.5 - goal[0, 0])
        assert any(length == pytest.approx(value) for value in lengths)
        offsets = goal[1:7, 1] - 2.0
        assert (np.sign(offsets[1:]) == -np.sign(offsets[:-1])).all(), "left and right in turn"
        assert (np.abs(offsets) >= 0.2 - 1e-9).all() and (np.abs(offsets) < side + 1e-9).all()
        spacing = np.diff(goal[1:7, 0])
        spacing[-1] -= 0.4
        gaps += (spacing - length).tolist()
        for index, offset in enumerate(offsets):
            x = round(goal[index + 1, 0] / H)
            y = round(goal[index + 1, 1] / H)
            edge = last_bank if index == 5 else bank
            across = height[x, y - 10 : y + 10] * np.sign(offset)
            assert across[-1] == pytest.approx(edge, abs=V) and across[0] == pytest.approx(-edge, abs=V)
            assert (np.diff(across) >= -1e-9).all()
        end = round((goal[6, 0] + 0.8) / H)
        assert (height[end + 1 :] == 0).all() and height[end].min() < -0.1
    assert min(gaps) >= -0.1 - 1e-9 and max(gaps) <= free + 1e-9 and max(gaps) > free - 0.06


def test_mean_length_of_the_tracks():
    """Mean x of the last goal, as the specification states it."""
    table = {
        "stones": (10.2, 9.3, 9.0),
        "hurdles": (14.3, 14.2, 14.2),
        "flat": (16.0, 16.0, 16.0),
        "steps": (9.3, 10.4, 11.8),
        "gaps": (11.1, 13.5, 16.0),
    }
    for kind, expected in table.items():
        for difficulty, mean in zip((0.0, 0.5, 1.0), expected, strict=True):
            _, goals = draw(kind, difficulty, 300)
            assert goals[:, -1, 0].mean() == pytest.approx(mean, abs=0.2), (kind, difficulty)


def test_roughness_is_small_even_and_the_same_at_every_difficulty():
    sizes = []
    for seed in range(40):
        rough = roughness(Grid(H, V, np.random.default_rng(seed))) * V
        assert abs(rough.mean()) < 0.005
        sizes.append(np.abs(rough).max())
        # points of both grids coincide every 0.15 m; there nothing is interpolated
        assert len(np.unique(rough[::3, ::3])) >= 2 * round(sizes[-1] / V) - 1
    assert min(sizes) >= 0.02 - 1e-9 and max(sizes) <= 0.06 + 1e-9
    assert min(sizes) < 0.03 and max(sizes) > 0.05


def test_a_whole_track_is_flat_but_rough_along_its_frame():
    for kind in TRACKS:
        heights, _ = build_track(kind, Grid(H, V, np.random.default_rng(3)), 1.0)
        frame = np.concatenate(
            [heights[:2].ravel(), heights[-2:].ravel(), heights[:, :2].ravel(), heights[:, -2:].ravel()]
        )
        assert np.abs(frame).max() * V <= 0.06 and np.abs(frame).max() > 0
