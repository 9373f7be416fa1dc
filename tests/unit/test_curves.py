import pytest

from epo_lab.runner.curves import CurveTable, mean_over, plot_curves, read_curves

pytestmark = pytest.mark.unit


def test_rows_are_appended_and_new_columns_reach_old_rows(tmp_path):
    table = CurveTable(tmp_path / "curves.csv")
    for iteration in range(3):
        table.add("loss", iteration / 2, iteration)
        if iteration == 2:
            table.add("metric", 7.0, iteration)
        table.write_row()
    columns, rows = read_curves(tmp_path / "curves.csv")
    assert columns == ["iteration", "loss", "metric"]
    assert [row["loss"] for row in rows] == ["0", "0.5", "1"]
    assert [row["metric"] for row in rows] == ["", "", "7"]


def test_a_resumed_run_goes_on_where_the_checkpoint_was(tmp_path):
    path = tmp_path / "curves.csv"
    first = CurveTable(path)
    for iteration in range(5):
        first.add("loss", iteration, iteration)
        first.write_row()
    second = CurveTable(path)
    second.drop_after(2)
    second.add("loss", 30.0, 3)
    second.write_row()
    assert [(row["iteration"], row["loss"]) for row in read_curves(path)[1]] == [
        ("0", "0"), ("1", "1"), ("2", "2"), ("3", "30"),
    ]  # fmt: skip


def test_a_row_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "curves.csv"
    path.write_text("iteration,loss\n11,5\n12,6\n1")
    assert [row["iteration"] for row in read_curves(path)[1]] == ["11", "12"]
    table = CurveTable(path)
    table.drop_after(12)
    table.add("loss", 7.0, 13)
    table.write_row()
    assert path.read_text() == "iteration,loss\n11,5\n12,6\n13,7\n"


def test_picture_is_drawn_from_the_table(tmp_path):
    table = CurveTable(tmp_path / "curves.csv")
    for iteration in range(4):
        table.add("loss", iteration, iteration)
        table.write_row()
    plot_curves({"run": tmp_path / "curves.csv"}, tmp_path / "curves.png", ["loss", "not there"])
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert not plot_curves({"run": tmp_path / "curves.csv"}, tmp_path / "other.png", ["not there"])


def test_values_are_averaged_over_those_before():
    from epo_lab.runner.curves import _moving_mean

    points = [(10.0, 1.0), (20.0, 3.0), (30.0, 8.0), (40.0, 4.0)]
    assert _moving_mean(points, 2) == ([10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 5.5, 6.0])
    assert _moving_mean(points, 1)[1] == [1.0, 3.0, 8.0, 4.0]


def test_means_take_both_ends_and_leave_out_what_was_not_logged():
    rows = [{"iteration": str(i), "lifted": text} for i, text in enumerate(["", "1", "3", "8", "100"])]
    assert mean_over(rows, "lifted", 0, 3) == 4.0
    assert mean_over(rows, "lifted", 2, 2) == 3.0
    assert mean_over(rows, "lifted", 0, 0) is None and mean_over(rows, "other", 0, 4) is None
