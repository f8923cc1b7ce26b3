"""The SQLite file itself: migrations, query plans, the size of the WAL, copies."""

import hashlib
import os
import sqlite3
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.store.test_journal import change, decision, outcome, write
from thrifty.files import flush_gently
from thrifty.router.export import decisions
from thrifty.store import Row, StoreError, open_store
from thrifty.store import sqlite_journal as statements
from thrifty.store.sqlite import SqliteStore
from thrifty.store.sqlite_schema import MIGRATIONS


def make_old_file(path: Path, rows: list[Row], snapshot: tuple[int, bytes]) -> None:
    """A file as the version before this one left it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for script in MIGRATIONS[:2]:
        connection.executescript(script)
    connection.execute("PRAGMA user_version = 2")
    marks = ", ".join("?" * 13)
    connection.executemany(f"INSERT INTO log VALUES ({marks})", [(n, "sms", *row) for n, row in enumerate(rows, start=1)])
    packed = zlib.compress(snapshot[1], 1)
    values = ("sms", snapshot[0], packed, hashlib.sha256(packed).hexdigest())
    connection.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", values)
    connection.execute("INSERT INTO pruned VALUES ('sms', 2)")
    connection.execute("INSERT INTO keys VALUES ('d1', 'ann', 'admin')")
    connection.close()


def test_a_file_of_the_version_before_is_upgraded_and_keeps_everything(tmp_path: Path) -> None:
    rows = [change("create"), *(row for n in range(1, 31) for row in (decision(n), outcome(n))), decision(31)]
    make_old_file(tmp_path / "r.db", rows, (2, b"old format"))
    with pytest.raises(StoreError, match=r"older thrifty \(schema 2, this one needs \d+\): upgrade it with `thrifty repair"):
        open_store(f"sqlite:///{tmp_path / 'r.db'}", reading=True)
    store = SqliteStore(tmp_path / "r.db")
    journal = store.journal("sms")
    assert [row for _, row in journal.scan()] == rows
    assert list(journal.snapshots()) == [(2, b"old format")]
    assert [row for _, row in journal.read(2)] == rows[2:]
    assert journal.open_decisions(after=0, upto=100, limit=5) == [(62, rows[-1])]
    assert (store.keys(), store.keys_required) == ([("d1", "admin", "ann", None, None, None)], True)
    assert journal.append(decision(32)) == 63
    journal.save_snapshot(63, b"new format")
    assert list(journal.snapshots()) == [(63, b"new format"), (2, b"old format")]
    assert store.remove_keys("ann") == 1
    store.close()
    store = SqliteStore(tmp_path / "r.db")
    assert len(list(store.journal("sms").scan())) == 63
    store.close()


PLANS = [
    (statements.LAST, (), "SEARCH log"),
    (statements.PAGE, ("sms", 1, 9), "log_router (router=? AND position>? AND position<?)"),
    (statements.OWN, ("sms", 1, 0), "log_sequence (router=? AND sequence=?)"),
    (statements.RESETS, ("sms", 1, 9), "log_changes (router=? AND position>? AND position<?)"),
    (statements.CHANGES, ("sms", 1), "log_changes (router=? AND position>?)"),
    (statements.NTH_LAST, ("sms", 9, 3), "log_router (router=? AND position<?)"),
    (statements.NEXT, ("sms", 1), "log_router (router=? AND position>?)"),
    (statements.OUTCOMES, ("sms", 1, 9, 0, 99), "log_sequence (router=? AND sequence>? AND sequence<?)"),
    (statements.OPEN_BETWEEN, ("sms", 1, 9, 5), "log_router (router=? AND position>? AND position<?)"),
    (statements.OPEN_AT, (1, "sms"), "INTEGER PRIMARY KEY (rowid=?)"),
    (statements.PRUNE_END, ("sms", 1, 9, 5), "log_router (router=? AND position>? AND position<?)"),
    (statements.PRUNE_STOP, ("sms", 1, 9, 0.5), "log_router (router=? AND position>? AND position<?)"),
    (statements.PRUNE_COUNT, ("sms", 1, 9), "log_router (router=? AND position>? AND position<?)"),
    (statements.PRUNE_DELETE, ("sms", 1, 9), "log_router (router=? AND position>? AND position<?)"),
]


@pytest.mark.parametrize("analysed", [False, True])
def test_no_statement_sorts_or_scans_the_log(tmp_path: Path, analysed: bool) -> None:
    store = SqliteStore(tmp_path / "r.db")
    write(store.journal("sms"), change("create"), *(row for n in range(1, 501) for row in (decision(n), outcome(n))))
    if analysed:
        store._writing.execute("ANALYZE")
    for text, values, expected in PLANS:
        plan = [line[3] for line in store._writing.execute(f"EXPLAIN QUERY PLAN {text}", values)]
        assert expected in plan[0], (text, plan)
        assert not [step for step in plan if "SCAN" in step or "B-TREE" in step], (text, plan)
    store.close()


def test_the_queries_of_the_journal_are_those_whose_plans_were_checked(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    journal = store.journal("sms")
    places = write(journal, change("create"), decision(1), outcome(1), decision(2))
    journal.save_snapshot(places[-1], b"state")
    used: set[str] = set()
    query, execute = store.query, store.execute
    store.query = lambda text, *values: (used.add(text), query(text, *values))[1]  # type: ignore[method-assign, func-returns-value]
    store.execute = lambda text, *values: (used.add(text), execute(text, *values))[1]  # type: ignore[method-assign, func-returns-value]
    list(journal.read(0))
    list(journal.scan())
    journal.outcomes(0, 1, 2, upto=9)
    journal.find(0, 1)
    journal.recent(1, upto=9)
    journal.changes(0)
    for _ in range(2):
        journal.open_decisions(after=0, upto=9, limit=5)
    journal.open_among((2,))
    journal.prune(before=2.0, upto=places[-1])
    assert {text for text in used if "FROM log" in text} == {text for text, _, _ in PLANS}
    store.close()


def rows_of(count: int, first: int = 1) -> list[Row]:
    return [row for n in range(first, first + count) for row in (decision(n)._replace(segment="s" * 100), outcome(n))]


@pytest.mark.parametrize("work", ["export", "backup"])
def test_the_wal_stays_small_while_the_log_is_read(tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit readers pause and the WAL begins again; without the limit it grows with the log, to more than 10 MB here.

    The bound: the limit, a commit, and what is written until the second attempt, when readers have come to their pause.
    """
    limit, path = 2 * 1024 * 1024, tmp_path / "r.db"
    monkeypatch.setattr("thrifty.store.sqlite_file.CHECKPOINT_PAGES", 10**6)  # SQLite by itself would not begin the WAL again
    store = SqliteStore(path, wal_limit=limit)
    journal = store.journal("sms")
    write(journal, change("create"), *rows_of(10_000))
    reader, stop, done = SqliteStore(path, reading=True, wal_limit=limit), threading.Event(), [0]

    def read() -> None:
        while not stop.is_set():
            if work == "export":
                assert sum(1 for _ in decisions(reader.journal("sms"), "sms")) >= 10_000
            else:
                assert reader.backup(tmp_path / f"copy{done[0]}.db") >= 20_000
            done[0] += 1

    thread = threading.Thread(target=read)
    thread.start()
    sizes, sequence, written, until = list[int](), 10_001, 0, time.monotonic() + 20
    while (written < 20 or done[0] < 1) and time.monotonic() < until:
        for row in rows_of(1_000, sequence):
            ticket = journal.append(row)
        journal.wait(ticket)
        sequence += 1_000
        sizes.append(os.stat(f"{path}-wal").st_size)
        time.sleep(0.02)  # so that the reader gets its turn
        written += 1
    stop.set()
    thread.join()
    reader.close()
    store.close()
    assert done[0] >= 1
    assert max(sizes) < 2 * limit + 1024 * 1024, sizes


def test_a_foreign_transaction_that_does_not_end_holds_nothing_up(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db", wal_limit=100_000)
    journal = store.journal("sms")
    write(journal, change("create"))
    foreign = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    foreign.execute("BEGIN")
    foreign.execute("SELECT count(*) FROM log").fetchone()
    slowest = 0.0
    for first in range(1, 4_001, 200):
        begun = time.monotonic()
        for row in rows_of(200, first):
            ticket = journal.append(row)
        journal.wait(ticket)
        slowest = max(slowest, time.monotonic() - begun)
    assert os.stat(f"{tmp_path / 'r.db'}-wal").st_size > 500_000
    assert slowest < 1.0
    foreign.execute("COMMIT")
    foreign.close()
    time.sleep(1.1)  # until the next attempt
    for sequence in (9_001, 9_002):
        journal.wait(journal.append(decision(sequence)))
    assert os.stat(f"{tmp_path / 'r.db'}-wal").st_size < 100_000
    store.close()


def test_a_copy_of_a_running_store_has_the_same_rows(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    journal = store.journal("sms")
    rows = [change("create"), *rows_of(50)]
    places = write(journal, *rows)
    write(store.journal("mail"), change("create"))
    journal.save_snapshot(places[-1], b"state" * 100_000)
    assert journal.prune(before=10.0, upto=places[-1]) == 18
    (mistake,) = write(journal, decision(99))
    journal.void(mistake, reason="a mistake")
    store.add_key("d1", "ann", "admin")
    store.remove_keys("ann")
    assert store.backup(tmp_path / "copy.db") == 1 + 82 + 1 + 1
    with pytest.raises(StoreError, match=r"copy.db exists already"):
        store.backup(tmp_path / "copy.db")
    journal.wait(journal.append(decision(100)))
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy.db"]
    copy = SqliteStore(tmp_path / "copy.db")
    assert list(copy.journal("sms").scan()) == list(journal.scan())[:-1]
    assert list(copy.journal("sms").snapshots()) == list(journal.snapshots())
    assert copy.journal("sms").voided() == journal.voided()
    assert (copy.logged(), copy.keys(), copy.keys_required) == (["mail", "sms"], [], True)
    with pytest.raises(StoreError, match="were pruned"):
        list(copy.journal("sms").read(0))
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert copy.query(schema) == store.query(schema)
    assert copy.query("PRAGMA integrity_check") == [("ok",)]
    copy.close()
    store.close()


def test_a_copy_that_a_prune_overtook_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from thrifty.store import sqlite_backup

    monkeypatch.setattr(sqlite_backup, "COPY_ROWS", 10)
    store = SqliteStore(tmp_path / "r.db")
    journal = store.journal("sms")
    places = write(journal, change("create"), *rows_of(50))
    journal.save_snapshot(places[-1], b"state")
    pruned = list[int]()

    def prune_meanwhile(path: Path) -> None:
        if not pruned:
            pruned.append(journal.prune(before=40.0, upto=places[-1]))
        flush_gently(path)

    monkeypatch.setattr(sqlite_backup, "flush_gently", prune_meanwhile)
    assert store.backup(tmp_path / "copy.db") == 101 - pruned[0]
    copy = SqliteStore(tmp_path / "copy.db")
    assert list(copy.journal("sms").scan()) == list(journal.scan())
    assert list(copy.journal("sms").read(places[-1])) == []
    copy.close()
    store.close()


def test_a_copy_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    write(store.journal("sms"), change("create"))
    with pytest.raises(StoreError, match=r"cannot copy .*r.db to .*nowhere/copy.db"):
        store.backup(tmp_path / "nowhere" / "copy.db")
    assert not [path for path in tmp_path.iterdir() if "copy" in path.name]
    store.close()


def test_decisions_go_on_while_the_store_is_copied(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    journal = store.journal("sms")
    write(journal, change("create"), *rows_of(20_000))
    copied: list[Any] = []
    thread = threading.Thread(target=lambda: copied.append(store.backup(tmp_path / "copy.db")))
    thread.start()
    waits, sequence = list[float](), 20_001
    while thread.is_alive():
        begun = time.monotonic()
        journal.wait(journal.append(decision(sequence)))
        waits.append(time.monotonic() - begun)
        sequence += 1
    thread.join()
    assert copied[0] >= 40_001
    assert len(waits) > 10
    assert sorted(waits)[len(waits) // 2] < 0.05
    store.close()
