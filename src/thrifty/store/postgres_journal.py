"""The log of one router in PostgreSQL."""

import hashlib
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg

from thrifty.store.log import CHANGE, DECISION, KEPT_SNAPSHOTS, OUTCOME, Listener, Row, StoreError, check_covered

if TYPE_CHECKING:
    from thrifty.store.postgres import PostgresStore

_FIELDS = ", ".join(Row._fields)
_FORGETTING = f"kind = '{CHANGE}' AND code IN ('create', 'reset')"


class PostgresJournal:
    """The log of one router in a PostgresStore; see `Journal`."""

    shared = True

    def __init__(self, store: "PostgresStore", router: str) -> None:
        self._store, self._router = store, router
        self.replica = store.replica

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

    def read(self, after: int, upto: int | None = None) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        yield from self._rows(after, 2**62 if upto is None else upto, fold=True)

    def scan(self) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        yield from self._rows(0, 2**62, fold=False)

    def _rows(self, after: int, upto: int, *, fold: bool) -> Iterator[tuple[int, Row]]:
        """In one view of the database, so that nothing can be pruned away meanwhile."""
        try:
            with self._store.connect() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                pruned = connection.execute("SELECT upto FROM pruned WHERE router = %s", (self._router,)).fetchone()
                if fold and pruned and pruned[0] > after:
                    raise StoreError(
                        f"rows up to {pruned[0]} of {self._router!r} were pruned, and no snapshot that covers them is whole"
                    )
                with connection.cursor("log") as cursor:
                    cursor.itersize = 10_000
                    cursor.execute(
                        f"SELECT position, {_FIELDS} FROM log WHERE router = %s AND position > %s AND position <= %s "
                        "ORDER BY position",
                        (self._router, after, upto),
                    )
                    for position, *fields in cursor:
                        yield position, Row(*fields)
        except psycopg.Error as error:
            raise StoreError(f"cannot read {self._store.place}: {str(error).strip()}") from error

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Row]:
        """See `Journal`."""
        rows = self._store.query(
            f"WITH decision AS (SELECT position FROM log WHERE router = %(router)s AND replica = %(replica)s "
            f"AND sequence = %(sequence)s AND kind = '{DECISION}') "
            f"SELECT position, {_FIELDS} FROM log WHERE position = (SELECT position FROM decision) AND position < %(before)s "
            f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND replica = %(replica)s "
            f"AND sequence = %(sequence)s AND kind = '{OUTCOME}' AND position < %(before)s "
            f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND {_FORGETTING} "
            f"AND position > (SELECT position FROM decision) AND position < %(before)s ORDER BY position",
            {"router": self._router, "replica": replica, "sequence": sequence, "before": 2**62 if before is None else before},
        )
        return [Row(*row[1:]) for row in rows] if rows and rows[0][1] == DECISION else []

    def recent(self, decisions: int, *, upto: int) -> list[Row]:
        """See `Journal`."""
        found = self._store.query(
            f"SELECT position FROM log WHERE router = %s AND kind = '{DECISION}' AND position <= %s "
            "ORDER BY position DESC LIMIT 1 OFFSET %s",
            (self._router, upto, decisions - 1), patience_s=60.0,
        )  # fmt: skip
        rows = self._store.query(
            f"SELECT {_FIELDS} FROM log WHERE router = %s AND position BETWEEN %s AND %s AND (kind <> '{CHANGE}' OR {_FORGETTING}) "
            "ORDER BY position",
            (self._router, found[0][0] if found else 0, upto), patience_s=60.0,
        )  # fmt: skip
        return [Row(*row) for row in rows]

    def save_snapshot(self, position: int, body: bytes) -> None:
        """See `Journal`."""
        packed = zlib.compress(body, 1)
        values = (self._router, position, packed, hashlib.sha256(packed).hexdigest())

        def save(connection: Any) -> None:
            with connection.transaction():
                connection.execute("INSERT INTO snapshots VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", values)
                connection.execute(
                    "DELETE FROM snapshots WHERE router = %(router)s AND position NOT IN "
                    "(SELECT position FROM snapshots WHERE router = %(router)s ORDER BY position DESC LIMIT %(kept)s)",
                    {"router": self._router, "kept": KEPT_SNAPSHOTS},
                )

        self._store.errand(save, patience_s=60.0)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """See `Journal`."""
        rows = self._store.query(
            "SELECT position, body, digest FROM snapshots WHERE router = %s ORDER BY position DESC",
            (self._router,),
            patience_s=60.0,
        )
        for position, packed, digest in rows:
            if hashlib.sha256(packed).hexdigest() == digest:
                yield position, zlib.decompress(packed)

    def prune(self, *, before: float, upto: int) -> int:
        """See `Journal`."""
        check_covered(self._router, upto, self.snapshots())

        def prune(connection: Any) -> int:
            with connection.transaction():
                (first,) = connection.execute(
                    f"SELECT min(position) FROM log WHERE router = %s AND kind = '{DECISION}' AND at >= %s", (self._router, before)
                ).fetchone()
                last = upto if first is None else min(upto, first - 1)
                count = connection.execute(
                    f"DELETE FROM log WHERE router = %s AND position <= %s AND kind <> '{CHANGE}'", (self._router, last)
                ).rowcount
                if count:
                    connection.execute(
                        "INSERT INTO pruned VALUES (%s, %s) ON CONFLICT (router) DO UPDATE "
                        "SET upto = greatest(pruned.upto, excluded.upto)",
                        (self._router, upto),
                    )
                return int(count)

        return int(self._store.errand(prune, patience_s=3600.0))
