"""The history in a SQLite file. It is written by the thread that writes the log, after the rows that it counts."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from thrifty.store.history import ADD, COLUMNS, STEPS, Cells, Place, Reached, table_rows
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.store.sqlite import SqliteStore
    from thrifty.store.sqlite_journal import SqliteJournal

ROWS_AT_ONCE = 64
"""Cells changed by one statement, at most; other numbers are made of powers of two, so that few statements are prepared."""

PIECE_PLACES = 200
"""Places that one commit adds to, at most, each in three steps: some milliseconds, for which decisions wait."""

PRUNE_ROWS = 2_000
"""Cells that one commit of a prune deletes, at most."""

SET_POSITION = (
    "INSERT INTO history_upto (router, position) VALUES (?, ?) "
    "ON CONFLICT DO UPDATE SET position = excluded.position, next = NULL, done = NULL"
)
SET_DONE = "INSERT INTO history_upto VALUES (?, 0, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next, done = excluded.done"
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

    def reached(self) -> Reached:
        """See `LocalHistory`. What is on its way is waited for."""
        with suppress(StoreError):  # lost, so it is not counted
            self._store.writer.wait(self._store.history_tickets.get(self._router, 0))
        found = self._store.query("SELECT position, next, done FROM history_upto WHERE router = ?", self._router)
        if not found:
            return Reached(0, 0)
        position, upto, done = found[0]
        return Reached(position, position) if done is None else Reached(position, upto, tuple(json.loads(done)))

    def position(self) -> int:
        """See `LocalHistory`."""
        return self.reached().position

    def write(self, cells: Cells, upto: int, generation: int) -> int:
        """See `LocalHistory`. In the order of the places: neighbours are in the same pages of the file."""
        places, ticket = sorted(cells), 0
        for first in range(0, max(len(places), 1), PIECE_PLACES):
            piece = {place: cells[place] for place in places[first : first + PIECE_PLACES]}
            self._store.writer.wait(ticket)
            done = places[first + PIECE_PLACES - 1] if first + PIECE_PLACES < len(places) else None
            ticket = self._append(piece, upto, done, generation)
        return ticket

    def _append(self, cells: Cells, upto: int, done: Place | None, generation: int) -> int:
        def add(connection: sqlite3.Connection) -> None:
            add_cells(connection, table_rows(self._router, cells, self._store.history_kept))
            if done is None:
                connection.execute(SET_POSITION, (self._router, upto))
            else:
                connection.execute(SET_DONE, (self._router, upto, json.dumps(done)))

        ticket = self._store.history_tickets[self._router] = self._journal.append_work(add, generation)
        return ticket

    def forget(self, *, since: float) -> None:
        """Forget the history of decisions made since a time: it will be filled from the log again."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM history WHERE router = ? AND start + step > ?", (self._router, since))
            connection.execute("DELETE FROM history_upto WHERE router = ?", (self._router,))

        self._journal.wait(self._journal.append_work(delete, self._journal.generation))


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
