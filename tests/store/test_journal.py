"""What both stores promise about the log of a router, without any router."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from thrifty.store import Row, StoreError, open_store
from thrifty.store import open_decisions as blocks


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'r.db'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.database()


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    opened = open_store(url)
    yield opened
    opened.close()


def decision(sequence: int, at: float | None = None) -> Row:
    return Row("d", 0, sequence, float(sequence) if at is None else at, "s", None, "a", 0.5, 0.1, "explore", None)


def outcome(sequence: int, code: str = "recorded") -> Row:
    return Row("o", 0, sequence, float(sequence), None, None, "a", 1.0, 0.1, code, None)


def change(code: str, sequence: int = 0) -> Row:
    detail = '{"arms": {"a": 0.1}, "settings": {"alpha": 0.1}}' if code == "create" else "{}"
    return Row("c", 0, sequence, float(sequence), None, None, None, None, None, code, detail)


def write(journal: Any, *rows: Row) -> list[int]:
    """Append rows, wait until they are durable, and find out their positions."""
    last = max((position for position, _ in journal.scan()), default=0)
    tickets = [journal.append(row) for row in rows]
    for ticket in tickets[-1:]:
        journal.wait(ticket)
    return [position for position, _ in journal.scan() if position > last]


def test_find_and_recent_have_positions_and_only_what_counts(store: Any) -> None:
    journal = store.journal("sms")
    other = store.journal("mail")
    rows = [change("create"), decision(1), outcome(1), change("settings"), decision(2), change("reset"), outcome(1, "corrected")]
    places = write(journal, *rows)
    write(other, change("create"), decision(1), outcome(1))
    placed = list(zip(places, rows, strict=True))
    assert journal.find(0, 1) == [placed[1], placed[2], placed[5], placed[6]]
    assert journal.find(0, 1, before=places[5]) == placed[1:3]
    assert journal.find(0, 1, before=places[1]) == []
    assert journal.find(0, 3) == journal.find(1, 1) == []
    assert journal.recent(1, upto=places[-1]) == placed[4:]
    assert journal.recent(2, upto=places[4]) == [placed[1], placed[2], placed[4]]
    assert journal.recent(9, upto=places[-1]) == [placed[0], placed[1], placed[2], *placed[4:]]
    assert list(journal.read(places[1], places[3])) == placed[2:4]
    assert store.logged() == ["mail", "sms"]
    assert store.row_at(places[4]) == ("sms", rows[4])
    assert store.row_at(10**6) is None


def test_a_voided_row_stays_and_is_not_read(store: Any) -> None:
    journal = store.journal("sms")
    rows = [change("create"), decision(1), outcome(1), change("settings"), decision(2), outcome(2)]
    places = write(journal, *rows)
    journal.save_snapshot(places[1], b"early")
    journal.save_snapshot(places[5], b"late")
    assert journal.open_decisions(after=0, upto=places[-1], limit=10) == []
    journal.void(places[2], reason="wrong price")
    assert journal.voided() == {places[2]: "wrong price"}
    assert store.row_at(places[2]) == ("sms", rows[2])
    left = [(places[n], rows[n]) for n in (0, 1, 3, 4, 5)]
    assert list(journal.read(0)) == list(journal.scan()) == left
    assert journal.find(0, 1) == [left[1]]
    assert journal.recent(10, upto=places[-1]) == [left[0], left[1], left[3], left[4]]
    assert journal.open_decisions(after=0, upto=places[-1], limit=10) == [left[1]]
    assert list(journal.snapshots()) == [(places[1], b"early")]  # the other contained the row
    journal.void(places[4], reason="twice")
    assert journal.find(0, 2) == []
    with pytest.raises(StoreError, match="'mail' has no row"):
        store.journal("mail").void(places[0], reason="of another router")
    journal.void(places[0], reason="the router was a mistake")
    assert store.routers() == []


def test_void_refuses_what_would_make_the_log_unreadable(store: Any) -> None:
    journal = store.journal("sms")
    places = write(journal, change("create"), decision(1), outcome(1), decision(2), decision(3))
    journal.save_snapshot(places[3], b"state")
    assert journal.prune(before=2.0, upto=places[3]) == 2
    with pytest.raises(StoreError, match="not read any more"):
        journal.void(places[3], reason="x")
    journal.void(places[4], reason="after the snapshot")
    assert list(journal.snapshots()) == [(places[3], b"state")]
    assert list(journal.read(places[3])) == []


def test_open_decisions_are_those_of_a_naive_search(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    monkeypatch.setattr(blocks, "REMEMBERED", 3)
    journal, other, rng = store.journal("sms"), store.journal("mail"), random.Random(1)
    waiting: list[int] = []
    sequence = 0
    for _ in range(12):
        batch = []
        for _ in range(rng.randrange(1, 40)):
            if waiting and rng.random() < 0.55:
                batch.append(outcome(waiting.pop(rng.randrange(len(waiting)))))
            else:
                sequence += 1
                waiting.append(sequence)
                batch.append(decision(sequence))
        for row in batch:
            ticket = journal.append(row)
            if rng.random() < 0.2:
                other.append(decision(row.sequence + 1000 * sequence) if row.kind == "d" else change("settings"))
        journal.wait(ticket)
        rows = list(journal.scan())
        answered = {row.sequence for _, row in rows if row.kind == "o"}
        for after, upto, limit in [
            (0, 10**9, 10**6),
            (0, rows[-1][0], 3),
            (rng.randrange(60), rng.randrange(400), 1 + rng.randrange(9)),
        ]:
            naive = [each for each in rows if each[1].kind == "d" and each[1].sequence not in answered and after < each[0] <= upto]
            assert journal.open_decisions(after=after, upto=upto, limit=limit) == naive[:limit]


def test_settled_blocks_are_remembered_and_not_read_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    for _ in range(2):  # and again after a restart
        store = open_store(url)
        journal = store.journal("sms")
        first = next(journal.scan(), (0, None))[0]
        if not first:
            write(journal, *(row for n in range(1, 101) for row in (decision(n), outcome(n))))
        looked: list[tuple[int, int]] = []
        search = type(journal).open_between

        def spy(self: Any, after: int, upto: int, limit: int, looked: Any = looked, search: Any = search) -> Any:
            looked.append((after, upto))
            return search(self, after, upto, limit)

        monkeypatch.setattr(type(journal), "open_between", spy)
        for _ in range(2):
            assert journal.open_decisions(after=0, upto=160, limit=5) == []
        monkeypatch.undo()
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
        assert len(looked) == (12 if not first else 2)  # ten blocks and twice the one that `upto` cuts; then only that one
        store.close()


def test_the_newest_whole_snapshots_are_kept(store: Any) -> None:
    journal = store.journal("sms")
    places = write(journal, change("create"), *(decision(n) for n in range(1, 5)))
    bodies = [random.Random(n).randbytes(300_000 * n) for n in range(1, 5)]
    for place, body in zip(places, bodies, strict=False):
        journal.save_snapshot(place, body)
    assert list(journal.snapshots()) == [(places[3], bodies[3]), (places[2], bodies[2])]
    journal.save_snapshot(places[3], b"another format")  # of the same position
    assert list(journal.snapshots()) == [(places[3], b"another format"), (places[2], bodies[2])]


def test_prune_works_in_pieces_and_keeps_what_is_young(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.store.sqlite_journal.PRUNE_ROWS", 7)
    monkeypatch.setattr("thrifty.store.postgres_journal.PRUNE_ROWS", 7)
    journal = store.journal("sms")
    rows = [change("create"), *(row for n in range(1, 41) for row in (decision(n), outcome(n))), change("settings", 40)]
    places = write(journal, *rows)
    with pytest.raises(StoreError, match="nothing was pruned"):
        journal.prune(before=30.0, upto=places[-1])
    journal.save_snapshot(places[-1], b"state")
    commits = store.writer.commits
    assert journal.prune(before=30.0, upto=places[-1]) == 58
    assert store.shared or store.writer.commits - commits >= 58 // 7
    assert [row for _, row in journal.scan()] == [rows[0], *rows[59:]]
    assert journal.prune(before=30.0, upto=places[-1]) == 0
    with pytest.raises(StoreError, match="were pruned"):
        list(journal.read(0))
    assert list(journal.read(places[-1])) == []


def test_a_read_that_a_prune_overtakes_is_an_error_and_not_a_gap(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "postgres_journal" if store.shared else "sqlite_journal"
    page = __import__(f"thrifty.store.{module}", fromlist=["PAGE"]).PAGE
    monkeypatch.setattr(f"thrifty.store.{module}.PAGE", page.replace("LIMIT 5000", "LIMIT 10"))
    journal = store.journal("sms")
    places = write(journal, *(decision(n) for n in range(1, 51)))
    journal.save_snapshot(places[-1], b"state")
    reading = journal.read(0)
    read = [next(reading) for _ in range(10)]
    assert journal.prune(before=40.0, upto=places[-1]) == 39
    assert [row.sequence for _, row in read] == list(range(1, 11))
    with pytest.raises(StoreError, match="were pruned"):
        next(reading)


def test_revoked_keys_are_not_valid_and_still_close_the_service(url: str) -> None:
    store = open_store(url)
    assert not store.keys_required
    store.add_key("d1", "ann", "admin")
    store.add_key("d2", "ann", "decide")
    store.add_key("d3", "bob", "decide")
    assert store.remove_keys("ann") == 2
    assert store.remove_keys("ann") == 0
    (bob,) = store.keys()
    assert bob[:3] == ("d3", "decide", "bob")
    assert store.remove_keys("bob") == 1
    assert store.keys() == []
    store.close()
    store = open_store(url)
    assert (store.keys(), store.keys_required) == ([], True)
    store.close()


def test_a_key_keeps_when_it_was_made_used_and_expires(url: str) -> None:
    store, before = open_store(url), time.time()
    store.add_key("d1", "ann", "admin", expires_at=2e9)
    store.add_key("d2", "bob", "view")
    store.note_uses({"d1": 50.0, "d2": 20.0, "unknown": 10.0})
    store.note_uses({"d1": 40.0, "d2": 60.0})
    ann, bob = sorted(store.keys())
    assert (ann[:4], ann.used_at) == (("d1", "admin", "ann", 2e9), 50.0)
    assert (bob.expires_at, bob.used_at) == (None, 60.0)
    assert before <= ann.made_at <= bob.made_at <= time.time()
    store.close()


def test_a_store_is_not_made_by_accident(url: str, tmp_path: Path) -> None:
    for reading in (False, True):
        with pytest.raises(StoreError, match="there is no store"):
            open_store(url, create=False, reading=reading)
    assert list(tmp_path.iterdir()) == []
    open_store(url).close()
    open_store(url, create=False).close()
    open_store(url, create=False, reading=True).close()


def test_decisions_are_committed_between_the_pieces_of_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.store.packed.PIECE_BYTES", 4_096)
    store = open_store(f"sqlite:///{tmp_path / 'r.db'}")
    journal = store.journal("sms")
    (place,) = write(journal, change("create"))
    body, sizes = random.Random(1).randbytes(400_000), list[int]()
    commit = store.writer._commit

    def measured(batch: Any) -> None:
        sizes.append(sum(len(item[1][3]) for _, item in batch if len(item) == 2 and "INTO snapshot_pieces" in item[0]))
        commit(batch)

    store.writer._commit = measured
    saving = threading.Thread(target=journal.save_snapshot, args=(place, body))
    saving.start()
    between = 0
    while saving.is_alive():
        journal.wait(journal.append(decision(between + 1)))
        between += 1
    saving.join()
    assert max(sizes) <= 4_096
    assert len([size for size in sizes if size]) >= 97
    assert between >= 10
    assert list(journal.snapshots()) == [(place, body)]
    store.close()


def test_an_interrupted_or_damaged_snapshot_is_passed_over_and_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.store.packed.PIECE_BYTES", 1_000)
    store = open_store(f"sqlite:///{tmp_path / 'r.db'}")
    journal = store.journal("sms")
    places = write(journal, change("create"), decision(1), decision(2), decision(3))
    body = random.Random(1).randbytes(5_000)
    journal.save_snapshot(places[0], body)
    execute, calls = store.execute, 0

    def interrupted(text: str, *values: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise StoreError("the process died")
        execute(text, *values)

    store.execute = interrupted
    with pytest.raises(StoreError, match="died"):
        journal.save_snapshot(places[1], body[::-1])
    store.execute = execute
    assert list(journal.snapshots()) == [(places[0], body)]
    assert store.query("SELECT count(DISTINCT digest) FROM snapshot_pieces") == [(2,)]
    journal.save_snapshot(places[2], b"whole")
    assert list(journal.snapshots()) == [(places[2], b"whole"), (places[0], body)]
    assert store.query("SELECT count(*) FROM snapshot_pieces") == [(7,)]
    store.execute("DELETE FROM snapshot_pieces WHERE number = 2")
    assert list(journal.snapshots()) == [(places[2], b"whole")]
    store.close()


def test_a_snapshot_of_rows_that_were_lost_is_refused(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'r.db'}")
    journal = store.journal("sms")
    write(journal, change("create"))
    commit = store.writer._commit

    def fails(_batch: Any) -> None:
        raise StoreError("no room")

    store.writer._commit = fails
    lost = 0
    for generation in range(150):  # more failures than are remembered one by one
        place = store.writer.append(("sms", *decision(1)), generation)
        lost = lost or place
        with pytest.raises(StoreError, match="no room"):
            store.writer.wait(place)
    store.writer._commit = commit
    journal.recover()
    journal.wait(journal.append(decision(1)))
    for position in (lost, place):
        with pytest.raises(StoreError, match="not stored"):
            journal.save_snapshot(position, b"with rows that are not in the log")
    assert list(journal.snapshots()) == []
    store.close()


def test_a_query_that_hangs_times_out(postgres: Postgres) -> None:
    store = open_store(postgres.database())
    journal = store.journal("sms")
    write(journal, change("create"), decision(1))
    postgres.pause()
    try:
        begun = time.monotonic()
        with pytest.raises(StoreError, match="does not answer"):
            journal.find(0, 1)
        assert 1.5 < time.monotonic() - begun < 4.0
    finally:
        postgres.resume()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            assert len(journal.find(0, 1)) == 1
            break
        except StoreError:
            time.sleep(0.1)
    else:
        pytest.fail("the store did not recover")
    store.close()


def test_a_snapshot_being_saved_does_not_hold_up_look_ups(postgres: Postgres) -> None:
    store = open_store(postgres.database())
    journal = store.journal("sms")
    write(journal, change("create"), decision(1))
    busy = threading.Thread(target=store.query_long, args=("SELECT pg_sleep(3)",))
    busy.start()
    begun = time.monotonic()
    assert len(journal.find(0, 1)) == 1
    assert time.monotonic() - begun < 1.5
    busy.join()
    store.close()
