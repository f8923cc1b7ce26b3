"""The log of one router in PostgreSQL."""

from collections.abc import Iterable, Iterator
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
from thrifty.store.packed import pack, unpack
from thrifty.store.postgres_history import PostgresHistory
from thrifty.store.postgres_outbox import MOST_OPEN
from thrifty.store.postgres_schema import PRESENCE, SAVING

if TYPE_CHECKING:
    from thrifty.store.postgres import PostgresStore

PRUNE_ROWS = 10_000
"""Rows of a router that one commit of a prune deletes, at most."""

_FIELDS = ", ".join(Row._fields)
_RESETS = f"kind = '{CHANGE}' AND code IN ('create', 'reset')"
_VALID = "position <> ALL (ARRAY(SELECT position FROM voided))"
_ROWS = f"SELECT position, {_FIELDS} FROM log WHERE router = %s AND position > %s AND position <= %s AND {_VALID}"
PAGE = f"{_ROWS} ORDER BY position LIMIT {PAGE_ROWS}"
FIND = (
    f"WITH decision AS (SELECT position FROM log WHERE router = %(router)s AND replica = %(replica)s "
    f"AND sequence = %(sequence)s AND kind = '{DECISION}' AND {_VALID}) "
    f"SELECT position, {_FIELDS} FROM log WHERE position = (SELECT position FROM decision) AND position < %(before)s "
    f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND replica = %(replica)s "
    f"AND sequence = %(sequence)s AND kind = '{OUTCOME}' AND position < %(before)s AND {_VALID} "
    f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND {_RESETS} "
    f"AND position > (SELECT position FROM decision) AND position < %(before)s AND {_VALID} ORDER BY position"
)
OUTCOMES = (
    f"SELECT position, {_FIELDS} FROM log WHERE router = %s AND replica = %s AND sequence BETWEEN %s AND %s "
    f"AND kind = '{OUTCOME}' AND position <= %s AND {_VALID}"
)
LAST_OF_REPLICA = f"SELECT max(sequence) FROM log WHERE router = %s AND replica = %s AND kind = '{DECISION}'"
IS_CONNECTED = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
CHANGES = (
    f"SELECT position, {_FIELDS} FROM log WHERE router = %s AND kind = '{CHANGE}' AND position > %s AND {_VALID} "
    f"ORDER BY position LIMIT {PAGE_ROWS}"
)
NTH_LAST = (
    f"SELECT position FROM log WHERE router = %s AND kind = '{DECISION}' AND position <= %s AND {_VALID} "
    "ORDER BY position DESC LIMIT 1 OFFSET %s"
)
NEXT = "SELECT position FROM log WHERE router = %s AND position > %s ORDER BY position LIMIT 1"
# A scalar subquery is looked up row by row; the planner could turn NOT EXISTS into a join that reads every outcome.
_UNANSWERED = (
    f"kind = '{DECISION}' AND (SELECT 1 FROM log AS answer WHERE answer.router = log.router AND answer.replica = log.replica "
    f"AND answer.sequence = log.sequence AND answer.kind = '{OUTCOME}' "
    "AND answer.position <> ALL (ARRAY(SELECT position FROM voided)) LIMIT 1) IS NULL"
)
OPEN_BETWEEN = f"{_ROWS} AND {_UNANSWERED} ORDER BY position LIMIT %s"
OPEN_AMONG = (
    f"SELECT position, {_FIELDS} FROM log WHERE position = ANY (%s) AND router = %s AND {_VALID} AND {_UNANSWERED} "
    "ORDER BY position"
)
PRUNE_END = "SELECT position FROM log WHERE router = %s AND position > %s AND position <= %s ORDER BY position LIMIT 1 OFFSET %s"
PRUNE_STOP = (
    f"SELECT position FROM log WHERE router = %s AND position > %s AND position <= %s AND kind = '{DECISION}' AND at >= %s "
    "ORDER BY position LIMIT 1"
)
MARK_PRUNED = "INSERT INTO pruned VALUES (%s, %s) ON CONFLICT (router) DO UPDATE SET upto = greatest(pruned.upto, excluded.upto)"
_OLD = f"FROM log WHERE router = %s AND position > %s AND position <= %s AND kind <> '{CHANGE}'"
PRUNE_SOME = f"SELECT EXISTS (SELECT {_OLD})"
PRUNE_DELETE = f"WITH deleted AS (DELETE {_OLD} RETURNING 1) SELECT count(*) FROM deleted"


class PostgresJournal:
    """The log of one router in a PostgresStore; see `Journal`."""

    shared = True

    def __init__(self, store: "PostgresStore", router: str) -> None:
        self._store, self._router = store, router
        self.replica = store.replica
        self.history = PostgresHistory(store, router)

    def append(self, row: Row, *, keep: bool = False) -> int:
        """See `Journal`."""
        return self._store.writer.append(self._router, row, keep=keep)

    def admit(self, *, keep: bool) -> None:
        """See `Journal`."""
        self._store.writer.admit(keep=keep)

    def wait(self, position: int) -> None:
        """See `Journal`."""
        self._store.writer.wait(position)

    def is_durable(self, position: int) -> bool:
        """See `Journal`."""
        return self._store.writer.is_durable(position)

    def is_degraded(self, position: int) -> bool:
        """See `Journal`."""
        return self._store.writer.is_degraded(position)

    def listen(self, listener: Listener) -> None:
        """See `Journal`."""
        self._store.writer.listen(self._router, listener)

    def ignore(self) -> None:
        """See `Journal`."""
        self._store.writer.ignore(self._router)

    def recover(self) -> None:
        """See `Journal`."""

    def read(self, after: int, upto: int | None = None) -> Iterator[Placed]:
        """See `Journal`."""
        last = 2**62 if upto is None else upto
        return read_pages(self._router, after, lambda position: self._page(position, last), self._pruned)

    def end(self) -> int:
        """See `Journal`."""
        return int(self._store.query_long("SELECT position FROM head")[0][0])

    def scan(self, upto: int | None = None) -> Iterator[Placed]:
        """See `Journal`."""
        yield from self._rows(0, self.end() if upto is None else upto)

    def outcomes(self, replica: int, first: int, last: int, *, upto: int) -> list[Placed]:
        """See `Journal`."""
        return sorted(_placed(self._store.query_long(OUTCOMES, (self._router, replica, first, last, upto))))

    def _rows(self, after: int, upto: int) -> Iterator[Placed]:
        while page := self._page(after, upto):
            yield from page
            after = page[-1][0]

    def _page(self, after: int, upto: int) -> list[Placed]:
        return _placed(self._store.query_long(PAGE, (self._router, after, upto)))

    def _pruned(self) -> int:
        found = self._store.query_long("SELECT upto FROM pruned WHERE router = %s", (self._router,))
        return int(found[0][0]) if found else 0

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Placed]:
        """See `Journal`."""
        last = 2**62 if before is None else before
        values = {"router": self._router, "replica": replica, "sequence": sequence, "before": last}
        rows = _placed(self._store.query(FIND, values))
        return rows if rows and rows[0][1].kind == DECISION else []

    def may_come(self, replica: int, sequence: int) -> bool:
        """See `Journal`."""
        connected = self._store.query(IS_CONNECTED, (PRESENCE, replica))[0][0]  # before the log: what it writes last counts
        (last,) = self._store.query(LAST_OF_REPLICA, (self._router, replica))[0]
        return bool(connected) and (last or 0) < sequence <= (last or 0) + MOST_OPEN

    def recent(self, decisions: int, *, upto: int) -> list[Placed]:
        """See `Journal`."""
        found = self._store.query_long(NTH_LAST, (self._router, upto, decisions - 1))
        rows = self._rows(found[0][0] - 1 if found else 0, upto)
        return [each for each in rows if each[1].kind != CHANGE or each[1].code in ("create", "reset")]

    def changes(self, after: int) -> list[Placed]:
        """See `Journal`."""
        return _placed(self._store.query(CHANGES, (self._router, after)))

    def open_decisions(self, *, after: int, upto: int, limit: int) -> list[Placed]:
        """See `Journal`."""
        return self._store.open_decisions[self._router].find(self, after=after, upto=upto, limit=limit)

    def durable_position(self) -> int:
        """See `OpenQueries`; for reading only, nothing is remembered."""
        return 0 if self._store.reads_only else self._store.writer.position

    def next_position(self, after: int) -> int | None:
        """See `OpenQueries`."""
        found = self._store.query_long(NEXT, (self._router, after))
        return int(found[0][0]) if found else None

    def open_between(self, after: int, upto: int, limit: int) -> list[Placed]:
        """See `OpenQueries`."""
        return _placed(self._store.query_long(OPEN_BETWEEN, (self._router, after, upto, limit)))

    def open_among(self, positions: tuple[int, ...]) -> list[Placed]:
        """See `OpenQueries`."""
        return _placed(self._store.query_long(OPEN_AMONG, (list(positions), self._router)))

    def settled_blocks(self) -> Iterable[int]:
        """See `OpenQueries`."""
        return [block for (block,) in self._store.query_long("SELECT block FROM settled WHERE router = %s", (self._router,))]

    def settle_block(self, block: int) -> None:
        """See `OpenQueries`."""
        self._store.query_long("INSERT INTO settled VALUES (%s, %s) ON CONFLICT DO NOTHING", (self._router, block))

    def save_snapshot(self, position: int, body: bytes | bytearray) -> None:
        """See `Journal`."""
        packed, digest = pack(body)

        def save(connection: Any) -> None:
            with connection.transaction():
                # One at a time: two replicas that do not see each other's snapshot would keep one too many.
                connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (SAVING, self._router))
                connection.execute(
                    "INSERT INTO snapshots VALUES (%s, %s, %s, %s) "
                    "ON CONFLICT (router, position) DO UPDATE SET body = excluded.body, digest = excluded.digest",
                    (self._router, position, packed, digest),
                )
                connection.execute(
                    "DELETE FROM snapshots WHERE router = %(router)s AND position NOT IN "
                    "(SELECT position FROM snapshots WHERE router = %(router)s ORDER BY position DESC LIMIT %(kept)s)",
                    {"router": self._router, "kept": KEPT_SNAPSHOTS},
                )

        self._store.run_long(save)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """See `Journal`."""
        listed = "SELECT position FROM snapshots WHERE router = %s ORDER BY position DESC"
        for (position,) in self._store.query_long(listed, (self._router,)):
            text = "SELECT body, digest FROM snapshots WHERE router = %s AND position = %s"
            for packed, digest in self._store.query_long(text, (self._router, position)):
                body = unpack(packed, digest)
                if body is not None:
                    yield position, body

    def prune(self, *, before: float, upto: int) -> int:
        """See `Journal`."""
        run, router, after, deleted = self._store.query_long, self._router, 0, 0
        check_covered(router, upto, self.snapshots())
        while after < upto:
            ends = run(PRUNE_END, (router, after, upto, PRUNE_ROWS - 1))
            end = int(ends[0][0]) if ends else upto
            stop = run(PRUNE_STOP, (router, after, end, before))
            last = int(stop[0][0]) - 1 if stop else end
            if run(PRUNE_SOME, (router, after, last))[0][0]:
                if not deleted:
                    run(MARK_PRUNED, (router, upto))
                deleted += int(run(PRUNE_DELETE, (router, after, last))[0][0])
            if stop:
                break
            after = end
        return deleted

    def void(self, position: int, *, reason: str) -> None:
        """See `Journal`. Replicas that run have applied the row already: they must be started again."""
        found = self._store.row_at(position)
        if found is None or found[0] != self._router:
            raise StoreError(f"the log of {self._router!r} has no row {position}")
        check_voidable(position, pruned=self._pruned(), snapshots=[at for at, _ in self.snapshots()])

        def mark(connection: Any) -> None:
            with connection.transaction():
                connection.execute("DELETE FROM settled WHERE router = %s", (self._router,))
                self.history.forget(connection, position)
                connection.execute("DELETE FROM snapshots WHERE router = %s AND position >= %s", (self._router, position))
                connection.execute(
                    "INSERT INTO voided (position, router, reason) VALUES (%s, %s, %s) "
                    "ON CONFLICT (position) DO UPDATE SET reason = excluded.reason",
                    (position, self._router, reason),
                )

        self._store.run_long(mark)
        self._store.open_decisions[self._router].forget()

    def voided(self) -> dict[int, str]:
        """See `Journal`."""
        return dict(self._store.query("SELECT position, reason FROM voided WHERE router = %s ORDER BY position", (self._router,)))


def _placed(rows: list[Any]) -> list[Placed]:
    return [(row[0], Row._make(row[1:])) for row in rows]
