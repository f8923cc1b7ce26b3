"""The history in a SQLite file. It is written by the thread that writes the log, after the rows that it counts."""

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from thrifty.store.history import ADD, COLUMNS, STEPS, Cells, table_rows
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.store.sqlite import SqliteStore
    from thrifty.store.sqlite_journal import SqliteJournal

ROWS_AT_ONCE = 64
"""Cells changed by one statement, at most; other numbers are made of powers of two, so that few statements are prepared."""

PRUNE_ROWS = 2_000
"""Cells that one commit of a prune deletes, at most."""

UPTO = "SELECT coalesce((SELECT position FROM history_upto WHERE router = ?), 0)"
SET_UPTO = "INSERT INTO history_upto VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position"
KEEP = "INSERT INTO history_kept VALUES (?, ?) ON CONFLICT DO UPDATE SET before = max(before, excluded.before)"
_OLD = "FROM history WHERE router = ?1 AND step = ?2 AND whole = ?3 AND start < ?4"
OLD_EXIST = f"SELECT EXISTS (SELECT 1 {_OLD})"
DELETE_OLD = (
    "DELETE FROM history WHERE router = ?1 AND step = ?2 AND whole = ?3 AND (start, segment, arm, group_name) IN "
    f"(SELECT start, segment, arm, group_name {_OLD} ORDER BY start, segment, arm, group_name LIMIT {PRUNE_ROWS})"
)


@cache
def _insert(rows: int) -> str:
    one = f"({', '.join('?' * len(COLUMNS))})"
    return f"INSERT INTO history ({', '.join(COLUMNS)}) VALUES {', '.join([one] * rows)} {ADD}"


class SqliteHistory:
    """The history of one router, as its journal offers it."""

    def __init__(self, store: "SqliteStore", journal: "SqliteJournal", router: str) -> None:
        self._store, self._journal, self._router = store, journal, router

    def position(self) -> int:
        """The rows of the log up to this position are counted, or were on their way when this was called."""
        with suppress(StoreError):  # lost, so they are not counted
            self._store.writer.wait(self._store.history_tickets.get(self._router, 0))
        return int(self._store.query(UPTO, self._router)[0][0])

    def write(self, cells: Cells, upto: int) -> int:
        """Add cells, and note that the rows up to `upto` are counted, after everything appended so far; what to wait for.

        A StoreError if rows of the log were lost and the journal was not told yet.
        """

        def add(connection: sqlite3.Connection) -> None:
            add_cells(connection, table_rows(self._router, cells, self._store.history_kept))
            connection.execute(SET_UPTO, (self._router, upto))

        ticket = self._store.history_tickets[self._router] = self._journal.append_work(add)
        return ticket

    def forget(self, *, since: float) -> None:
        """Forget the history of decisions made since a time: it will be filled from the log again."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM history WHERE router = ? AND start + step > ?", (self._router, since))
            connection.execute("DELETE FROM history_upto WHERE router = ?", (self._router,))

        self._journal.wait(self._journal.append_work(delete))


def add_cells(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Add rows to the table, many with one statement: each releases the interpreter and must wait to get it back."""
    first, size = 0, ROWS_AT_ONCE
    while first < len(rows):
        while size > len(rows) - first:
            size //= 2
        connection.execute(_insert(size), list(chain.from_iterable(rows[first : first + size])))
        first += size


def kept_since(connection: sqlite3.Connection) -> dict[int, int]:
    """By seconds of a step, the time before which its cells were deleted."""
    return dict(connection.execute("SELECT step, before FROM history_kept").fetchall())


def prune(store: "SqliteStore", before: Mapping[str, float]) -> None:
    """Delete the cells of steps that began before a time. From the first commit on nobody sees them, and nobody adds to them."""
    limits = {STEPS[step]: int(time // STEPS[step] * STEPS[step]) for step, time in before.items()}
    for seconds, limit in limits.items():
        if limit > store.history_kept.get(seconds, 0):
            store.execute(KEEP, seconds, limit)
            store.history_kept[seconds] = limit
    for router in [name for (name,) in store.query("SELECT router FROM history_upto")]:
        for seconds, limit in limits.items():
            for whole in (0, 1):
                while store.query(OLD_EXIST, router, seconds, whole, limit)[0][0]:
                    store.execute(DELETE_OLD, router, seconds, whole, limit)
