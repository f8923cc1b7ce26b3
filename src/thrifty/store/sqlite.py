"""SQLite: one file, one process. WAL and synchronous=FULL: what was acknowledged survives kill -9 and the loss of power."""

import fcntl
import hashlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from thrifty.store.group_commit import GroupCommit
from thrifty.store.log import CHANGE, DECISION, KEPT_SNAPSHOTS, OUTCOME, Listener, Row, StoreError, check_covered

MIGRATIONS = (
    """
    CREATE TABLE log (
        position INTEGER PRIMARY KEY, router TEXT NOT NULL, kind TEXT NOT NULL, replica INTEGER NOT NULL, sequence INTEGER NOT NULL,
        at REAL NOT NULL, segment TEXT, request_id TEXT, arm TEXT, value REAL, cost REAL, code TEXT NOT NULL, detail TEXT
    ) STRICT;
    CREATE INDEX log_sequence ON log (router, sequence);
    CREATE TABLE snapshots (
        router TEXT NOT NULL, position INTEGER NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (router, position)
    ) STRICT;
    CREATE TABLE pruned (router TEXT PRIMARY KEY, upto INTEGER NOT NULL) STRICT;
    CREATE TABLE keys (digest TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL) STRICT;
    """,
    """
    CREATE INDEX log_changes ON log (router, position) WHERE kind = 'c';
    """,
)
"""Numbered by their place; a file says in user_version how many it has had."""

_COLUMNS = ", ".join(Row._fields)
_FORGETTING = f"kind = '{CHANGE}' AND code IN ('create', 'reset')"
ROWS_AT_ONCE = 128
"""Rows in one statement, at most; the connection keeps as many statements prepared."""


@cache
def _insert(rows: int) -> str:
    one = f"({', '.join('?' * (len(Row._fields) + 2))})"
    return f"INSERT INTO log (position, router, {_COLUMNS}) VALUES {', '.join([one] * rows)}"


class SqliteStore:
    """The store in one file; a second process that opens it is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteStore(Path(folder) / "routes.db")
    ...     store.journal("sms").wait(0)
    ...     store.close()
    """

    shared, turnover = False, 0

    def __init__(self, path: str | Path, *, busy_s: float = 5.0, reading: bool = False) -> None:
        self.path = Path(path)
        self._read_lock = threading.Lock()
        self._reads_only = reading
        if reading:
            self._reading = _look_into(self.path, busy_s)
            self._check_version(self._reading)
            self.writer = GroupCommit(self._commit, durable=0)
            return
        self._lock_file = _own(self.path)
        try:
            self._writing = self._connect(busy_s)
            self._migrate()
            self._reading = self._connect(busy_s)
            (last,) = self._writing.execute("SELECT coalesce(max(position), 0) FROM log").fetchone()
            (pruned,) = self._writing.execute("SELECT coalesce(max(upto), 0) FROM pruned").fetchone()
        except sqlite3.Error as error:
            os.close(self._lock_file)
            raise StoreError(f"cannot open {self.path}: {error}") from error
        self.writer = GroupCommit(self._commit, durable=max(last, pruned))

    def check(self) -> str:
        """Say "ready"; a StoreError when the last commit failed."""
        if self.writer.failure is not None:
            raise self.writer.failure
        return "ready"

    def journal(self, router: str) -> "SqliteJournal":
        """The log of one router."""
        return SqliteJournal(self, router)

    def routers(self) -> list[str]:
        """The names of the routers that have a log and were not deleted."""
        rows = self.query("SELECT router, max(position) FROM log WHERE kind = 'c' AND code IN ('create', 'delete') GROUP BY router")
        return [name for name, last in rows if self.query("SELECT code FROM log WHERE position = ?", last)[0][0] != "delete"]

    def logged(self) -> list[str]:
        """The names of the routers that have a log, deleted ones included."""
        return [name for (name,) in self.query("SELECT DISTINCT router FROM log ORDER BY router")]

    def keys(self) -> list[tuple[str, str, str]]:
        """Digest, roles and name of every API key."""
        return self.query("SELECT digest, role, name FROM keys")

    def add_key(self, digest: str, name: str, role: str) -> None:
        """Keep the digest of an API key."""
        self.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", digest, name, role)

    def remove_keys(self, name: str) -> int:
        """Forget all API keys of a name; how many there were."""
        (count,) = self.query("SELECT count(*) FROM keys WHERE name = ?", name)[0]
        self.execute("DELETE FROM keys WHERE name = ?", name)
        return int(count)

    def query(self, text: str, *values: Any) -> list[Any]:
        """All rows of a reading statement."""
        try:
            with self._read_lock:
                return self._reading.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def execute(self, text: str, *values: Any) -> None:
        """Run one writing statement and commit it, behind everything appended so far."""
        self.writer.wait(self.writer.append((text, values), self.writer.generation))

    def close(self) -> None:
        """Commit what was appended, and let go of the file."""
        self.writer.close()
        self._reading.close()
        if not self._reads_only:
            self._writing.close()
            os.close(self._lock_file)

    def _connect(self, busy_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=ROWS_AT_ONCE + 32
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _check_version(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise StoreError(f"{self.path} was written by a newer thrifty (schema {version}, this one knows {len(MIGRATIONS)})")
        return int(version)

    def _migrate(self) -> None:
        version = self._check_version(self._writing)
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            self._writing.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")

    def _commit(self, batch: list[tuple[int, Any]]) -> None:
        """Rows in as few statements as possible: each gives the interpreter away and has to wait until it gets it back."""
        if self._reads_only:
            raise StoreError(f"{self.path} was opened for reading")
        connection = self._writing
        rows = [(position, *item) for position, item in batch if len(item) > 2]
        try:
            if len(rows) == len(batch) <= ROWS_AT_ONCE:  # one statement is a transaction by itself
                connection.execute(_insert(len(rows)), list(chain.from_iterable(rows)))
                return
            connection.execute("BEGIN IMMEDIATE")
            for first in range(0, len(rows), ROWS_AT_ONCE):
                some = rows[first : first + ROWS_AT_ONCE]
                connection.execute(_insert(len(some)), list(chain.from_iterable(some)))
            for _, item in batch:
                if len(item) == 2:
                    connection.execute(*item)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise StoreError(f"cannot write {self.path}: {error}") from error


class SqliteJournal:
    """The log of one router in a SqliteStore; see `Journal`."""

    replica, shared = 0, False

    def __init__(self, store: SqliteStore, router: str) -> None:
        self._store, self._router = store, router
        self._generation = store.writer.generation

    def append(self, row: Row, *, keep: bool = False) -> int:  # noqa: ARG002
        """See `Journal`."""
        return self._store.writer.append((self._router, *row), self._generation)

    def admit(self, *, keep: bool) -> None:
        """See `Journal`."""

    def is_degraded(self, position: int) -> bool:  # noqa: ARG002
        """See `Journal`; this log is never away, it fails."""
        return False

    def listen(self, listener: Listener) -> None:
        """See `Journal`; there are no others to listen to."""

    def ignore(self) -> None:
        """See `Journal`."""

    def wait(self, position: int) -> None:
        """See `Journal`."""
        self._store.writer.wait(position)

    def is_durable(self, position: int) -> bool:
        """See `Journal`."""
        return self._store.writer.is_durable(position)

    def recover(self) -> None:
        """See `Journal`."""
        self._generation = self._store.writer.generation

    def read(self, after: int, upto: int | None = None) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        pruned = self._store.query("SELECT upto FROM pruned WHERE router = ?", self._router)
        if pruned and pruned[0][0] > after:
            raise StoreError(
                f"rows up to {pruned[0][0]} of {self._router!r} were pruned, and no snapshot that covers them is whole"
            )
        for position, row in self._rows(after):
            if upto is not None and position > upto:
                return
            yield position, row

    def scan(self) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        yield from self._rows(0)

    def _rows(self, after: int) -> Iterator[tuple[int, Row]]:
        while rows := self._store.query(
            f"SELECT position, {_COLUMNS} FROM log WHERE router = ? AND position > ? ORDER BY position LIMIT 10000",
            self._router,
            after,
        ):
            for row in rows:
                yield row[0], Row(*row[1:])
            after = rows[-1][0]

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Row]:
        """See `Journal`."""
        first = self._store.query(
            f"SELECT position FROM log WHERE router = ? AND sequence = ? AND kind = '{DECISION}' AND replica = ?",
            self._router, sequence, replica,
        )  # fmt: skip
        if not first:
            return []
        own = f"sequence = ?2 AND kind IN ('{DECISION}', '{OUTCOME}') AND replica = ?3"
        rows = self._store.query(
            f"SELECT position, {_COLUMNS} FROM log WHERE router = ?1 AND {own} AND position < ?5 UNION ALL "
            f"SELECT position, {_COLUMNS} FROM log WHERE router = ?1 AND {_FORGETTING} AND position BETWEEN ?4 AND ?5 - 1 "
            "ORDER BY position",
            self._router, sequence, replica, first[0][0], 2**62 if before is None else before,
        )  # fmt: skip
        return [Row(*row[1:]) for row in rows]

    def recent(self, decisions: int, *, upto: int) -> list[Row]:
        """See `Journal`."""
        found = self._store.query(
            f"SELECT position FROM log WHERE router = ? AND kind = '{DECISION}' AND position <= ? "
            "ORDER BY position DESC LIMIT 1 OFFSET ?",
            self._router, upto, decisions - 1,
        )  # fmt: skip
        rows = self._store.query(
            f"SELECT {_COLUMNS} FROM log WHERE router = ? AND position BETWEEN ? AND ? AND (kind <> '{CHANGE}' OR {_FORGETTING}) "
            "ORDER BY position",
            self._router, found[0][0] if found else 0, upto,
        )  # fmt: skip
        return [Row(*row) for row in rows]

    def save_snapshot(self, position: int, body: bytes) -> None:
        """See `Journal`."""
        packed = zlib.compress(body, 1)
        writer = self._store.writer
        values = (self._router, position, packed, hashlib.sha256(packed).hexdigest())
        writer.append(("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", values), self._generation)
        text = (
            "DELETE FROM snapshots WHERE router = ?1 AND position NOT IN "
            "(SELECT position FROM snapshots WHERE router = ?1 ORDER BY position DESC LIMIT ?2)"
        )
        writer.append((text, (self._router, KEPT_SNAPSHOTS)), self._generation)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """See `Journal`."""
        rows = self._store.query(
            "SELECT position, body, digest FROM snapshots WHERE router = ? ORDER BY position DESC", self._router
        )
        for position, packed, digest in rows:
            if hashlib.sha256(packed).hexdigest() == digest:
                yield position, zlib.decompress(packed)

    def prune(self, *, before: float, upto: int) -> int:
        """See `Journal`."""
        self._store.execute("SELECT 1")  # behind the snapshot, which may still be on its way
        check_covered(self._router, upto, self.snapshots())
        (first,) = self._store.query(
            f"SELECT min(position) FROM log WHERE router = ? AND kind = '{DECISION}' AND at >= ?", self._router, before
        )[0]
        last = upto if first is None else min(upto, first - 1)
        old = f"router = ? AND position <= ? AND kind <> '{CHANGE}'"
        (count,) = self._store.query(f"SELECT count(*) FROM log WHERE {old}", self._router, last)[0]
        if count:
            self._store.execute("INSERT OR REPLACE INTO pruned VALUES (?, ?)", self._router, upto)
            self._store.execute(f"DELETE FROM log WHERE {old}", self._router, last)
        return int(count)


def _look_into(path: Path, busy_s: float) -> sqlite3.Connection:
    """A connection that cannot write, beside whoever owns the file."""
    how = "mode=ro"
    wal = Path(f"{path}-wal")
    if path.exists() and os.statvfs(path).f_flag & os.ST_RDONLY and not (wal.exists() and wal.stat().st_size):
        how = "immutable=1"  # nobody can change it, and SQLite could not make the files it needs beside those who do
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}", uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("SELECT 1 FROM log LIMIT 1")
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    return connection


def _own(path: Path) -> int:
    """A lock that says that this process owns the file; given back by the system when the process ends, however it ends."""
    try:
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(f"{path} is in use by another process: let that one serve, or give this one a file of its own") from None
    return handle
