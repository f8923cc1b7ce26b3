"""Listeners of a log in PostgreSQL: what one of them raises does not stop the others."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres import Postgres
from tests.store.test_journal import change, decision, outcome
from thrifty.store import Row, StoreError
from thrifty.store import postgres_journal as statements
from thrifty.store.postgres import PostgresStore


class Recorder:
    """A listener that keeps what it gets, and raises at one sequence."""

    def __init__(self, *, raises: Exception | None = None, at: int = 0, times: int = 10**6, fail_raises: bool = False) -> None:
        self.rows: list[tuple[int, Row, int | None]] = []
        self.refused: list[tuple[int, Row]] = []
        self.failures: list[Exception] = []
        self._raises, self._at, self._times, self._fail_raises = raises, at, times, fail_raises

    def _check(self, sequence: int) -> None:
        if self._raises is not None and sequence == self._at and self._times > 0:
            self._times -= 1
            raise self._raises

    def take(self, position: int, row: Row, ticket: int | None) -> None:
        self._check(row.sequence)
        self.rows.append((position, row, ticket))

    def refuse(self, ticket: int, known: Row) -> None:
        self._check(-1)
        self.refused.append((ticket, known))

    def catch_up(self, upto: int) -> None:
        del upto

    def fail(self, error: Exception) -> None:
        self.failures.append(error)
        if self._fail_raises:
            raise RuntimeError("and this fails too")

    def sequences(self) -> list[int]:
        return [row.sequence for _, row, _ in self.rows]


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.database()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(url)
    yield opened
    opened.close()


def until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


@pytest.mark.parametrize("fail_raises", [False, True])
def test_a_listener_that_raises_is_dropped_and_all_others_go_on(store: PostgresStore, url: str, fail_raises: bool) -> None:
    broken, healthy = Recorder(raises=ValueError("no such policy"), at=2, fail_raises=fail_raises), Recorder()
    sms, mail = store.journal("sms"), store.journal("mail")
    sms.listen(broken)
    mail.listen(healthy)
    other = PostgresStore(url)  # what it writes is followed too
    for sequence in (1, 2, 3):
        for name in ("sms", "mail"):
            other.journal(name).append(decision(sequence))
    own = [sms.append(decision(4)._replace(replica=9)), mail.append(decision(4)._replace(replica=9))]
    for ticket in own:
        store.writer.wait(ticket)  # it is written, whoever can apply it
    until(lambda: len(healthy.rows) == 4)
    assert sorted(healthy.sequences()) == [1, 2, 3, 4]
    assert [ticket for _, row, ticket in healthy.rows if row.sequence == 4] == own[1:]
    assert 2 not in broken.sequences()
    assert [str(error) for error in broken.failures] == ["no such policy"]
    assert (store.check(), store.writer.failure) == ("ready", None)
    again = Recorder()
    sms.listen(again)  # it may come back
    other.journal("sms").append(decision(5))
    until(lambda: again.sequences() == [5])
    other.close()


def test_a_listener_that_cannot_be_refused_is_dropped(store: PostgresStore) -> None:
    broken = Recorder(raises=KeyError("unknown"), at=-1)
    journal = store.journal("sms")
    journal.listen(broken)
    for sequence in (1, 2):
        journal.wait(journal.append(decision(sequence)._replace(request_id="q")))
    until(lambda: len(broken.failures) == 1)
    assert [row.sequence for _, row in journal.scan()] == [1]
    assert store.check() == "ready"


def test_a_store_error_of_a_listener_is_tried_again_because_the_database_may_have_been_away(store: PostgresStore) -> None:
    shaky = Recorder(raises=StoreError("does not answer"), at=2, times=2)
    hopeless = Recorder(raises=StoreError("does not answer"), at=2)
    healthy = Recorder()
    for name, listener in (("sms", shaky), ("mail", hopeless), ("push", healthy)):
        store.journal(name).listen(listener)
    for name in ("sms", "mail", "push"):
        for sequence in (1, 2, 3):
            store.journal(name).append(decision(sequence), keep=True)
    until(lambda: healthy.sequences() == [1, 2, 3], seconds=30.0)
    assert shaky.sequences() == [1, 2, 3]
    assert shaky.failures == []
    assert hopeless.sequences() == [1]
    assert len(hopeless.failures) == 1
    until(lambda: store.check() == "ready")


def test_a_voided_row_is_not_passed_on(store: PostgresStore, url: str) -> None:
    other = PostgresStore(url)
    journal = store.journal("sms")
    journal.wait(journal.append(decision(1)))
    listener = Recorder()
    synchronise = other.writer._synchronise
    other.writer._synchronise = lambda: None  # type: ignore[method-assign]
    time.sleep(0.2)  # from now on it reads nothing
    for sequence in (2, 3):
        journal.wait(journal.append(decision(sequence)))
    (place,) = [position for position, row in journal.scan() if row.sequence == 2]
    journal.void(place, reason="a mistake")
    other.writer.listen("sms", listener)
    other.writer._synchronise = synchronise  # type: ignore[method-assign]
    until(lambda: 3 in listener.sequences())
    assert 2 not in listener.sequences()
    other.close()


def test_no_statement_sorts_or_scans_the_log_of_postgresql(url: str) -> None:
    PostgresStore(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = thrifty")
        connection.execute(
            "INSERT INTO log SELECT n, 'r' || n % 2, CASE n % 3 WHEN 0 THEN 'd' WHEN 1 THEN 'o' ELSE 'c' END, 0, n, n, '', NULL, "
            "'a', 1, 1, 'x', NULL, 1, n, 0 FROM generate_series(1, 200000) AS n"
        )
        connection.execute("ANALYZE log")
        cases: list[tuple[str, Any]] = [
            (statements.PAGE, ("r1", 1, 2**62)),
            (statements.NTH_LAST, ("r1", 2**62, 100)),
            (statements.NEXT, ("r1", 500)),
            (statements.OUTCOMES, ("r1", 0, 500, 2500, 2**62)),
            (statements.OPEN_BETWEEN, ("r1", 0, 8191, 100)),
            (statements.OPEN_AMONG, ([1, 2, 3], "r1")),
            (statements.PRUNE_END, ("r1", 1, 2**62, 9999)),
            (statements.PRUNE_STOP, ("r1", 1, 8000, 70000.0)),
            (statements.PRUNE_SOME, ("r1", 1, 8000)),
            (statements.PRUNE_DELETE, ("r1", 1, 8000)),
            (statements.FIND, {"router": "r1", "replica": 0, "sequence": 15, "before": 2**62}),
        ]
        for text, values in cases:
            plan = [line for (line,) in connection.execute(f"EXPLAIN {text}", values)]
            scans = [line for line in plan if "Seq Scan on log" in line]
            assert not scans, (text, plan)
            if text not in (statements.FIND, statements.OPEN_AMONG, statements.OPEN_BETWEEN):  # they sort a block at most
                assert not [line for line in plan if "Sort" in line], (text, plan)


def test_a_database_of_the_version_before_is_upgraded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from thrifty.store import postgres_schema

    everything = postgres_schema.MIGRATIONS
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = thrifty")
        monkeypatch.setattr(postgres_schema, "MIGRATIONS", everything[:1])
        postgres_schema.migrate(connection)
        connection.execute("INSERT INTO keys VALUES ('d1', 'ann', 'admin')")
        connection.execute(
            "INSERT INTO log VALUES (1, 'sms', 'c', 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 'create', '{}', 1, 1, 0), "
            "(2, 'sms', 'd', 0, 1, 1, '', NULL, 'a', 1, 1, 'only', NULL, 1, 2, 0); UPDATE head SET position = 2"
        )
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", everything)
    with pytest.raises(StoreError, match=r"older thrifty \(schema 1, this one needs \d+\)"):
        PostgresStore(url, reading=True)
    store = PostgresStore(url)
    assert (store.keys(), store.keys_required) == ([("d1", "admin", "ann", None, None, None)], True)
    assert [position for position, _ in store.journal("sms").open_decisions(after=0, upto=9, limit=9)] == [2]
    store.close()


def test_rows_of_every_kind_come_to_a_listener_in_order(store: PostgresStore) -> None:
    listener, journal = Recorder(), store.journal("sms")
    journal.listen(listener)
    rows = [change("create"), decision(1), outcome(1)]
    tickets = [journal.append(row) for row in rows]
    journal.wait(tickets[-1])
    until(lambda: len(listener.rows) == 3)
    assert [(row, ticket) for _, row, ticket in listener.rows] == list(zip(rows, tickets, strict=True))
