"""Progress says how long the rest takes, whatever came before the first piece."""

import io
import sys

import pytest

from thrifty.cli.progress import ProgressBar


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True


def test_the_time_left_is_reckoned_from_the_first_piece_that_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = [0.0], Terminal()
    monkeypatch.setattr("thrifty.cli.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", terminal)
    bar = ProgressBar("playing", "game")
    for now, done in ((0.0, 0), (60.0, 1), (62.0, 3), (63.0, 4)):  # a minute of compiling, then a game a second
        clock[0] = now
        bar(done, 10)
    lines = terminal.getvalue().split("\r\x1b[K")[1:]
    assert "compiling" in lines[0]
    assert lines[1].endswith("1/10 games")
    assert [line.rpartition(", ")[2] for line in lines[2:]] == ["7 s left", "6 s left"]
