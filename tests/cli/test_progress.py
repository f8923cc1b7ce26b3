"""Progress on standard error."""

import pytest

from thrifty.cli.progress import ProgressBar


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("thrifty.cli.progress.time", made)
    return made


def test_without_a_terminal_there_is_a_line_every_half_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("playing", "instance") as bar:
        for done in range(9):
            bar(done, 8)
            clock.now += 10.0
    assert capsys.readouterr().err.splitlines() == [
        "playing 3/8 instances, 50 s left",
        "playing 6/8 instances, 20 s left",
    ]


def test_a_slow_start_is_called_compiling(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("playing", "instance") as bar:
        clock.now += 31.0
        bar(0, 8)
        bar(0, 8)
    assert capsys.readouterr().err.splitlines() == ["playing: compiling (kernels are kept for the next time)"]


def test_a_terminal_gets_a_bar(clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ProgressBar("playing", "round") as bar:
        clock.now += 1.0
        bar(1, 2)
    assert capsys.readouterr().err == "\r\x1b[Kplaying [###############...............] 1/2 rounds, 1 s left\r\x1b[K"
