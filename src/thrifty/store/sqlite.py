"""SQLite: one file, one process that writes. WAL and synchronous=FULL: a confirmed row survives kill -9 and the loss of power."""

import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from thrifty.store.alerts import AlertTable
from thrifty.store.group_commit import GroupCommit
from thrifty.store.history import History, HistoryQuery
from thrifty.store.log import KEYS, LOGGED, Row, StoredKey, StoreError
from thrifty.store.open_decisions import OpenDecisions
from thrifty.store.sqlite_backup import back_up
from thrifty.store.sqlite_file import connect_reading, connect_writing, lock_file, require_file
from thrifty.store.sqlite_history import kept_since, prune
from thrifty.store.sqlite_journal import SqliteJournal
from thrifty.store.sqlite_schema import migrate
from thrifty.store.sqlite_wal import WAL_LIMIT_BYTES, ReaderPause, WalLimit

ROWS_AT_ONCE = 128
"""Rows in one INSERT, at most; the connection caches one prepared statement for each number of rows."""

_COLUMNS = ", ".join(Row._fields)


@cache
def _insert(rows: int) -> str:
    one = f"({', '.join('?' * (len(Row._fields) + 2))})"
    return f"INSERT INTO log (position, router, {_COLUMNS}) VALUES {', '.join([one] * rows)}"


class SqliteStore:
    """The store in one file. A second process that opens it for writing is refused.

    Parameters
    ----------
    path : the file
    busy_s : how long a statement waits for a lock that another process holds
    reading : open it for reading only, while another process may write
    create : make the file if there is none; otherwise a StoreError
    wal_limit : size of the WAL in bytes beyond which the writer begins it again, and long reads pause for that

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore(Path(folder) / "routes.db")
    ...     store.journal("sms").wait(0)
    ...     store.close()

    """

    shared, turnover = False, 0

    def __init__(
        self,
        path: str | Path,
        *,
        busy_s: float = 5.0,
        reading: bool = False,
        create: bool = True,
        wal_limit: int = WAL_LIMIT_BYTES,
    ) -> None:
        self.path, self.reads_only = Path(path), reading
        self._wal, self.reader_pause = WalLimit(self.path, wal_limit, busy_s=busy_s), ReaderPause(self.path, wal_limit)
        self._read_lock = threading.Lock()
        self.history_tickets: dict[str, int] = {}  # by router, what to wait for until its history is written
        self.snapshot_lock = threading.Lock()
        self.open_decisions: defaultdict[str, OpenDecisions] = defaultdict(OpenDecisions)
        self.alerts = AlertTable(lambda text, values: self.query(text, *values), lambda text, values: self.execute(text, *values))
        if reading:
            self._reading = connect_reading(self.path, busy_s=busy_s)
            self.writer = GroupCommit(self._commit, durable=0)
            return
        if not create:
            require_file(self.path)
        self._lock_file = lock_file(self.path)
        try:
            self._writing = connect_writing(self.path, busy_s=busy_s, statements=ROWS_AT_ONCE + 32)
            migrate(self._writing, self.path)
            self._reading = connect_writing(self.path, busy_s=busy_s, statements=32)
            (last,) = self._writing.execute("SELECT coalesce(max(position), 0) FROM log").fetchone()
            self.history_kept = kept_since(self._writing)
            (pruned,) = self._writing.execute("SELECT coalesce(max(upto), 0) FROM pruned").fetchone()
        except sqlite3.Error as error:
            os.close(self._lock_file)
            raise StoreError(f"cannot open {self.path}: {error}") from error
        except StoreError:
            os.close(self._lock_file)
            raise
        self.writer = GroupCommit(self._commit, durable=max(last, pruned))

    def check(self) -> str:
        """Return "ready"; raise a StoreError if the last commit failed."""
        if self.writer.failure is not None:
            raise self.writer.failure
        return "ready"

    def lead(self, name: str) -> bool:  # noqa: ARG002
        """True: one process writes to the file."""
        return not self.reads_only

    def journal(self, router: str) -> SqliteJournal:
        """The log of one router."""
        return SqliteJournal(self, router)

    def routers(self) -> list[str]:
        """Names of the routers that have a log and are not deleted."""
        rows = self.query(
            "SELECT router, max(position), code FROM log WHERE kind = 'c' AND code IN ('create', 'delete') "
            "AND position NOT IN (SELECT position FROM voided) GROUP BY router"
        )
        return [name for name, _, code in rows if code != "delete"]

    def logged(self) -> list[str]:
        """Names of the routers that have a log, including deleted ones. One index search for each name."""
        return [name for (name,) in self.query(LOGGED)]

    def row_at(self, position: int) -> tuple[str, Row] | None:
        """The router and the row of a position, voided or not; None if there is no row."""
        found = self.query(f"SELECT router, {_COLUMNS} FROM log WHERE position = ?", position)
        return (found[0][0], Row(*found[0][1:])) if found else None

    @property
    def keys_required(self) -> bool:
        """True once any API key was added, even if all keys are revoked by now."""
        return bool(self.query("SELECT EXISTS (SELECT 1 FROM keys)")[0][0])

    def keys(self) -> list[StoredKey]:
        """Every API key that was not revoked, expired ones included."""
        return [StoredKey(*row) for row in self.query(KEYS)]

    def add_key(self, digest: str, name: str, role: str, *, expires_at: float | None = None) -> None:
        """Store the digest of an API key."""
        text = "INSERT OR REPLACE INTO keys (digest, name, role, expires_at, made_at) VALUES (?, ?, ?, ?, ?)"
        self.execute(text, digest, name, role, expires_at, time.time())

    def note_uses(self, used_at: Mapping[str, float]) -> None:
        """Store when keys were last used, by digest; earlier times than the known ones change nothing."""
        text, position = "UPDATE keys SET used_at = max(coalesce(used_at, 0), ?) WHERE digest = ?", 0
        for digest, at in used_at.items():
            position = self.writer.append((text, (at, digest)), self.writer.generation)
        self.writer.wait(position)

    def remove_keys(self, name: str) -> int:
        """Revoke all API keys of a name; returns how many there were. Their rows stay, marked as revoked."""
        (count,) = self.query("SELECT count(*) FROM keys WHERE name = ? AND NOT revoked", name)[0]
        self.execute("UPDATE keys SET revoked = 1 WHERE name = ?", name)
        return int(count)

    def backup(self, path: str | Path) -> int:
        """Write a consistent copy to a new file, while others read and write; returns the number of rows of the log in it."""
        return back_up(self, Path(path))

    def history(self, router: str, **asked: Any) -> History:
        """See `Store`."""
        wanted = HistoryQuery(**asked)
        upto, (text, values) = self.journal(router).history.position(), wanted.select(router, "?")
        return wanted.answer(router, upto, self.query(text, *values))

    def prune_history(self, before: Mapping[str, float]) -> None:
        """See `Store`."""
        prune(self, before)

    def query(self, text: str, *values: Any) -> list[Any]:
        """All rows of a reading statement."""
        try:
            with self._read_lock:
                return self._reading.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def execute(self, text: str, *values: Any) -> None:
        """Run one writing statement after everything appended so far, and wait for its commit."""
        self.writer.wait(self.writer.append((text, values), self.writer.generation))

    def close(self) -> None:
        """Commit what was appended, and close the file."""
        self.writer.close()
        self._reading.close()
        if not self.reads_only:
            self._writing.close()
            os.close(self._lock_file)

    def _commit(self, batch: list[tuple[int, Any]]) -> None:
        """Commit rows and statements, in few statements: each releases the interpreter and must wait to get it back."""
        if self.reads_only:
            raise StoreError(f"{self.path} was opened for reading")
        connection = self._writing
        rows = [(position, *item) for position, item in batch if len(item) > 2]
        try:
            if len(rows) == len(batch) <= ROWS_AT_ONCE:  # one statement is a transaction by itself
                connection.execute(_insert(len(rows)), list(chain.from_iterable(rows)))
            else:
                self._commit_many(rows, [item for _, item in batch if len(item) == 2])
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise StoreError(f"cannot write {self.path}: {error}") from error
        self._wal.keep(connection)

    def _commit_many(self, rows: list[tuple[Any, ...]], statements: list[tuple[Any, Any]]) -> None:
        """Statements are SQL with its values, or functions of the connection."""
        connection = self._writing
        connection.execute("BEGIN IMMEDIATE")
        for first in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[first : first + ROWS_AT_ONCE]
            connection.execute(_insert(len(some)), list(chain.from_iterable(some)))
        for statement, values in statements:
            if callable(statement):
                statement(connection)
            else:
                connection.execute(statement, values)
        connection.execute("COMMIT")
