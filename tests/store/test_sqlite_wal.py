"""Readers pause while the WAL is too large, and not in vain for long."""

import time
from pathlib import Path

import pytest

from thrifty.store import sqlite_wal
from thrifty.store.sqlite_wal import PAUSE_AGAIN_S, PAUSE_S, ReaderPause, wal_bytes


class Watch:
    """Stands for the module `time`: sleeping is all that lets time pass. After `writer_at` the writer begins the WAL again."""

    def __init__(self, wal: Path, writer_at: float) -> None:
        self.now, self._wal, self._writer_at = 100.0, wal, 100.0 + writer_at

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self._writer_at:
            self._wal.write_bytes(b"")


def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, size: int, writer_at: float) -> Watch:
    wal = tmp_path / "r.db-wal"
    wal.write_bytes(b"x" * size)
    found = Watch(wal, writer_at)
    monkeypatch.setattr(sqlite_wal, "time", found)
    return found


def test_a_reader_pauses_until_the_wal_has_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = watch(tmp_path, monkeypatch, size=1001, writer_at=0.2)
    ReaderPause(tmp_path / "r.db", 1000).take()
    assert wal_bytes(tmp_path / "r.db") == 0
    assert clock.now == pytest.approx(100.2, abs=0.01)


def test_a_reader_does_not_pause_for_a_small_wal_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = watch(tmp_path, monkeypatch, size=1000, writer_at=0.2)
    ReaderPause(tmp_path / "r.db", 1000).take()
    ReaderPause(tmp_path / "other.db", 1000).take()
    assert clock.now == 100.0


def test_after_a_pause_in_vain_a_reader_goes_on_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = watch(tmp_path, monkeypatch, size=1001, writer_at=1e9)
    pause = ReaderPause(tmp_path / "r.db", 1000)
    pause.take()
    after = clock.now
    assert after == pytest.approx(100.0 + PAUSE_S, abs=0.01)
    pause.take()
    assert clock.now == after
    clock.now += PAUSE_AGAIN_S
    pause.take()
    assert clock.now > after + PAUSE_AGAIN_S


def test_the_real_clock_is_what_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_wal, "PAUSE_S", 0.02)
    (tmp_path / "r.db-wal").write_bytes(b"x" * 10)
    began = time.monotonic()
    ReaderPause(tmp_path / "r.db", 1).take()
    assert time.monotonic() - began >= 0.02
