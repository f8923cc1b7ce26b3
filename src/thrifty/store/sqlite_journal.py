"""The log of one router in a SQLite file. Every query is a short one by an index: none sorts, none scans the table."""

import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from thrifty.store.log import (
    CHANGE,
    DECISION,
    KEPT_SNAPSHOTS,
    OUTCOME,
    PAGE_ROWS,
    Listener,
    Placed,
    Row,
    StoreError,
    check_covered,
    check_voidable,
    read_pages,
)
from thrifty.store.packed import pack, pieces, unpack
from thrifty.store.sqlite_history import SqliteHistory

if TYPE_CHECKING:
    from thrifty.store.sqlite import SqliteStore

PRUNE_ROWS = 2_000
"""Rows of a router that one commit of a prune deletes, at most. Measured: 10 ms; decisions would wait 45 ms for 10,000 rows."""

_COLUMNS = ", ".join(Row._fields)
_VALID = "position NOT IN (SELECT position FROM voided)"
_RESETS = f"kind = '{CHANGE}' AND code IN ('create', 'reset')"
_BETWEEN = "FROM log INDEXED BY log_router WHERE router = ? AND position > ? AND position <= ?"
_ROWS = f"SELECT position, {_COLUMNS} {_BETWEEN} AND {_VALID}"
LAST = "SELECT coalesce(max(position), 0) FROM log"
PAGE = f"{_ROWS} ORDER BY position LIMIT {PAGE_ROWS}"
OWN = (
    f"SELECT position, {_COLUMNS} FROM log INDEXED BY log_sequence WHERE router = ? AND sequence = ? AND replica = ? "
    f"AND kind IN ('{DECISION}', '{OUTCOME}') AND {_VALID} ORDER BY position"
)
OUTCOMES = (
    f"SELECT position, {_COLUMNS} FROM log INDEXED BY log_sequence WHERE router = ? AND sequence BETWEEN ? AND ? AND replica = ? "
    f"AND kind = '{OUTCOME}' AND position <= ? AND {_VALID}"
)
RESETS = (
    f"SELECT position, {_COLUMNS} FROM log INDEXED BY log_changes WHERE router = ? AND {_RESETS} AND position > ? AND position < ? "
    f"AND {_VALID} ORDER BY position"
)
CHANGES = (
    f"SELECT position, {_COLUMNS} FROM log INDEXED BY log_changes WHERE router = ? AND kind = '{CHANGE}' AND position > ? "
    f"AND {_VALID} ORDER BY position LIMIT {PAGE_ROWS}"
)
NTH_LAST = (
    f"SELECT position FROM log INDEXED BY log_router WHERE router = ? AND kind = '{DECISION}' AND position <= ? AND {_VALID} "
    "ORDER BY position DESC LIMIT 1 OFFSET ?"
)
NEXT = "SELECT position FROM log INDEXED BY log_router WHERE router = ? AND position > ? ORDER BY position LIMIT 1"
_UNANSWERED = (
    f"kind = '{DECISION}' AND NOT EXISTS (SELECT 1 FROM log AS answer INDEXED BY log_sequence WHERE answer.router = log.router "
    f"AND answer.sequence = log.sequence AND answer.replica = log.replica AND answer.kind = '{OUTCOME}' "
    "AND answer.position NOT IN (SELECT position FROM voided))"
)
OPEN_BETWEEN = f"{_ROWS} AND {_UNANSWERED} ORDER BY position LIMIT ?"
OPEN_AT = f"SELECT position, {_COLUMNS} FROM log WHERE position = ? AND router = ? AND {_VALID} AND {_UNANSWERED}"
PRUNE_END = f"SELECT position {_BETWEEN} ORDER BY position LIMIT 1 OFFSET ?"
PRUNE_STOP = f"SELECT position {_BETWEEN} AND kind = '{DECISION}' AND at >= ? ORDER BY position LIMIT 1"
_OLD = f"{_BETWEEN} AND kind <> '{CHANGE}'"
SNAPSHOTS = "SELECT position FROM snapshots WHERE router = ? ORDER BY position DESC"
MARK_PRUNED = "INSERT INTO pruned VALUES (?, ?) ON CONFLICT DO UPDATE SET upto = max(upto, excluded.upto)"
PRUNE_COUNT, PRUNE_DELETE = f"SELECT count(*) {_OLD}", f"DELETE {_OLD}"


class SqliteJournal:
    """The log of one router in a SqliteStore; see `Journal`."""

    replica, shared = 0, False

    def __init__(self, store: "SqliteStore", router: str) -> None:
        self._store, self._router = store, router
        self.generation = store.writer.generation
        self.history = SqliteHistory(store, self, router)

    def append(self, row: Row, *, keep: bool = False) -> int:  # noqa: ARG002
        """See `Journal`."""
        return self._store.writer.append((self._router, *row), self.generation)

    def append_work(self, work: Callable[[sqlite3.Connection], None], generation: int) -> int:
        """Have a function change the file, in one transaction with the rows around it; what to pass to `wait`.

        A StoreError if rows were lost since the journal was of that `generation`.
        """
        return self._store.writer.append((work, ()), generation)

    def admit(self, *, keep: bool) -> None:
        """See `Journal`."""

    def is_degraded(self, position: int) -> bool:  # noqa: ARG002
        """See `Journal`; a file is never out of reach, its commits fail."""
        return False

    def listen(self, listener: Listener) -> None:
        """See `Journal`; nobody else writes to a file."""

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
        self.generation = self._store.writer.generation

    def read(self, after: int, upto: int | None = None) -> Iterator[Placed]:
        """See `Journal`."""
        last = 2**62 if upto is None else upto
        return read_pages(self._router, after, lambda position: self._page(position, last), self._pruned)

    def end(self) -> int:
        """See `Journal`."""
        return int(self._store.query(LAST)[0][0])

    def scan(self, upto: int | None = None) -> Iterator[Placed]:
        """See `Journal`."""
        yield from self._rows(0, self.end() if upto is None else upto)

    def outcomes(self, replica: int, first: int, last: int, *, upto: int) -> list[Placed]:
        """See `Journal`."""
        return sorted(self._placed(OUTCOMES, self._router, first, last, replica, upto))

    def _rows(self, after: int, upto: int) -> Iterator[Placed]:
        while page := self._page(after, upto):
            yield from page
            after = page[-1][0]

    def _page(self, after: int, upto: int) -> list[Placed]:
        if self._store.reads_only:
            self._store.reader_pause.take()
        return self._placed(PAGE, self._router, after, upto)

    def _placed(self, text: str, *values: Any) -> list[Placed]:
        return [(row[0], Row._make(row[1:])) for row in self._store.query(text, *values)]

    def _pruned(self) -> int:
        found = self._store.query("SELECT upto FROM pruned WHERE router = ?", self._router)
        return int(found[0][0]) if found else 0

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Placed]:
        """See `Journal`."""
        before = 2**62 if before is None else before
        own = [each for each in self._placed(OWN, self._router, sequence, replica) if each[0] < before]
        first = next((position for position, row in own if row.kind == DECISION), None)
        if first is None:
            return []
        return sorted([*own, *self._placed(RESETS, self._router, first, before)], key=lambda each: each[0])

    def may_come(self, replica: int, sequence: int) -> bool:  # noqa: ARG002
        """See `Journal`: nobody else writes."""
        return False

    def recent(self, decisions: int, *, upto: int) -> list[Placed]:
        """See `Journal`."""
        found = self._store.query(NTH_LAST, self._router, upto, decisions - 1)
        rows = self._rows(found[0][0] - 1 if found else 0, upto)
        return [each for each in rows if each[1].kind != CHANGE or each[1].code in ("create", "reset")]

    def changes(self, after: int) -> list[Placed]:
        """See `Journal`."""
        return self._placed(CHANGES, self._router, after)

    def open_decisions(self, *, after: int, upto: int, limit: int) -> list[Placed]:
        """See `Journal`."""
        return self._store.open_decisions[self._router].find(self, after=after, upto=upto, limit=limit)

    def durable_position(self) -> int:
        """See `OpenQueries`."""
        return self._store.writer.durable

    def next_position(self, after: int) -> int | None:
        """See `OpenQueries`."""
        found = self._store.query(NEXT, self._router, after)
        return int(found[0][0]) if found else None

    def open_between(self, after: int, upto: int, limit: int) -> list[Placed]:
        """See `OpenQueries`."""
        return self._placed(OPEN_BETWEEN, self._router, after, upto, limit)

    def open_among(self, positions: tuple[int, ...]) -> list[Placed]:
        """See `OpenQueries`."""
        return [each for position in positions for each in self._placed(OPEN_AT, position, self._router)]

    def settled_blocks(self) -> Iterable[int]:
        """See `OpenQueries`."""
        return [block for (block,) in self._store.query("SELECT block FROM settled WHERE router = ?", self._router)]

    def settle_block(self, block: int) -> None:
        """See `OpenQueries`."""
        self._append("INSERT OR IGNORE INTO settled VALUES (?, ?)", self._router, block)

    def _append(self, text: str, *values: Any) -> None:
        """Have a statement committed, without waiting for it."""
        self._store.writer.append((text, values), self._store.writer.generation)

    def save_snapshot(self, position: int, body: bytes | bytearray) -> None:
        """See `Journal`. Each piece is a commit, and is waited for: decisions are committed with it and after it."""
        packed, digest = pack(body)
        store, router = self._store, self._router
        self.wait(position)  # raises if rows that the snapshot contains were lost
        with store.snapshot_lock:
            self._delete_pieces()
            for number, piece in enumerate(pieces(packed)):
                store.execute("INSERT OR REPLACE INTO snapshot_pieces VALUES (?, ?, ?, ?)", router, digest, number, piece)
            store.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, x'', ?)", router, position, digest)
            for (old,) in store.query(SNAPSHOTS, router)[KEPT_SNAPSHOTS:]:
                store.execute("DELETE FROM snapshots WHERE router = ? AND position = ?", router, old)
            self._delete_pieces()

    def _delete_pieces(self) -> None:
        """Delete pieces that belong to no snapshot: of deleted ones, and of those that were interrupted."""
        unused = self._store.query(
            "SELECT rowid FROM snapshot_pieces WHERE router = ?1 "
            "AND digest NOT IN (SELECT digest FROM snapshots WHERE router = ?1)",
            self._router,
        )
        for (rowid,) in unused:
            self._store.execute("DELETE FROM snapshot_pieces WHERE rowid = ?", rowid)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """See `Journal`."""
        store, router = self._store, self._router
        for (position,) in store.query(SNAPSHOTS, router):
            for packed, digest in store.query(
                "SELECT body, digest FROM snapshots WHERE router = ? AND position = ?", router, position
            ):
                body = unpack(packed or self._join_pieces(digest), digest)
                if body is not None:
                    yield position, body

    def _join_pieces(self, digest: str) -> bytes:
        key, found = (self._router, digest), list[bytes]()
        while rows := self._store.query(
            "SELECT body FROM snapshot_pieces WHERE router = ? AND digest = ? AND number = ?", *key, len(found)
        ):
            found.append(rows[0][0])
        return b"".join(found)

    def prune(self, *, before: float, upto: int) -> int:
        """See `Journal`."""
        store, router, after, deleted = self._store, self._router, 0, 0
        check_covered(router, upto, self.snapshots())
        while after < upto:
            ends = store.query(PRUNE_END, router, after, upto, PRUNE_ROWS - 1)
            end = int(ends[0][0]) if ends else upto
            stop = store.query(PRUNE_STOP, router, after, end, before)
            last = int(stop[0][0]) - 1 if stop else end
            (count,) = store.query(PRUNE_COUNT, router, after, last)[0]
            if count:
                if not deleted:
                    store.execute(MARK_PRUNED, router, upto)
                store.execute(PRUNE_DELETE, router, after, last)
                deleted += int(count)
            if stop:
                break
            after = end
        return deleted

    def void(self, position: int, *, reason: str) -> None:
        """See `Journal`."""
        store, router = self._store, self._router
        found = store.row_at(position)
        if found is None or found[0] != router:
            raise StoreError(f"the log of {router!r} has no row {position}")
        check_voidable(position, pruned=self._pruned(), snapshots=[at for at, _ in self.snapshots()])
        if position <= self.history.position():
            self.history.forget(since=self._first_time() if self._pruned() else -math.inf)
        store.execute("DELETE FROM settled WHERE router = ?", router)
        store.execute("DELETE FROM snapshots WHERE router = ? AND position >= ?", router, position)
        store.execute("INSERT OR REPLACE INTO voided VALUES (?, ?, ?, ?)", position, router, reason, time.time())
        store.open_decisions[router].forget()

    def _first_time(self) -> float:
        """When the oldest decision that is not pruned was made; infinity if there is none."""
        first = self._store.query(f"SELECT min(at) FROM log WHERE router = ? AND kind = '{DECISION}'", self._router)[0][0]
        return math.inf if first is None else float(first)

    def voided(self) -> dict[int, str]:
        """See `Journal`."""
        return dict(self._store.query("SELECT position, reason FROM voided WHERE router = ? ORDER BY position", self._router))
