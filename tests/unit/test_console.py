import io

import pytest

from epo_lab.runner.console import Console, count, duration

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_one_line_that_is_redrawn():
    stream = Terminal()
    console = Console(stream)
    console.update(1, 4, {"reward": "1.0"})
    console.update(4, 4, {"reward": "2.0"}, final=True)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().count("\r") == 2
    assert "4/4 | reward 2.0" in stream.getvalue()


def test_a_file_gets_a_line_every_few_seconds_and_the_last_one():
    stream = io.StringIO()
    console = Console(stream, interval=1000.0)
    for done in range(1, 5):
        console.update(done, 4, {}, final=done == 4)
    assert stream.getvalue() == "1/4 ( 25%)\n4/4 (100%)\n"


def test_numbers_are_short():
    assert [count(number) for number in (950, 12_345, 4_500_000)] == ["950", "12.3k", "4.5M"]
    assert duration(3725.4) == "1:02:05"


def test_what_is_quick_shows_nothing_if_patience_is_asked_for():
    for stream in (io.StringIO(), Terminal()):
        console = Console(stream, interval=1000.0, patient=True)
        console.update(1, 2, {})
        console.update(2, 2, {}, final=True)
        assert stream.getvalue() == ""
    stream = Terminal()
    console = Console(stream, interval=0.0, patient=True)
    console.update(1, 2, {})
    console.update(2, 2, {}, final=True)
    assert stream.getvalue().count("\r") == 2 and stream.getvalue().endswith("\n")
