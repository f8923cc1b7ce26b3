"""The history in PostgreSQL: several replicas count the same rows, and each row counts once.

Whoever writes locks the router's row of `history_upto`, adds what the rows behind that position add, and moves the position. So it
does not matter which replica writes, or whether one repeats a transaction whose confirmation was lost.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thrifty.store.history import ADD, COLUMNS, STEPS, Deltas, Reached, table_rows
from thrifty.store.log import DECISION

if TYPE_CHECKING:
    from thrifty.store.postgres import PostgresStore

PRUNE_ROWS = 10_000
"""Cells that one commit of a prune deletes, at most."""

_TYPES = ("text", "integer", "smallint", "bigint", "text", "text", "text", "bigint", "bigint", "float8", "float8")
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in _TYPES)
INSERT = f"INSERT INTO history ({', '.join(COLUMNS)}) SELECT * FROM unnest({_ARRAYS}) {ADD}"
UPTO = "SELECT coalesce((SELECT position FROM history_upto WHERE router = %s), 0)"
LOCK = "SELECT position FROM history_upto WHERE router = %s FOR UPDATE"
BEGIN_UPTO = "INSERT INTO history_upto VALUES (%s, 0) ON CONFLICT DO NOTHING"
SET_UPTO = "UPDATE history_upto SET position = %s WHERE router = %s"
KEEP = (
    "INSERT INTO history_kept VALUES (%s, %s) ON CONFLICT (step) "
    "DO UPDATE SET before = greatest(history_kept.before, excluded.before)"
)
FIRST_TIME = f"SELECT coalesce(min(at), 'infinity') FROM log WHERE router = %s AND kind = '{DECISION}'"
FORGET = "DELETE FROM history WHERE router = %s AND start + step > %s"
DELETE_OLD = (
    "DELETE FROM history WHERE ctid = ANY (ARRAY(SELECT ctid FROM history "
    f"WHERE router = %s AND step = %s AND whole = %s AND start < %s LIMIT {PRUNE_ROWS})) RETURNING 1"
)


class PostgresHistory:
    """The history of one router; see `SharedHistory`."""

    def __init__(self, store: "PostgresStore", router: str) -> None:
        self._store, self._router = store, router

    def position(self) -> int:
        """See `SharedHistory`."""
        return int(self._store.query_long(UPTO, (self._router,))[0][0])

    def reached(self) -> Reached:
        """See `SharedHistory`."""
        return Reached(self.position(), 0)

    def write(self, deltas: Deltas, upto: int) -> int:
        """See `SharedHistory`."""
        since, router = deltas.since, self._router

        def add(connection: Any) -> int:
            with connection.transaction():
                connection.execute(BEGIN_UPTO, (router,))
                (counted,) = connection.execute(LOCK, (router,)).fetchone()
                if counted < since or counted >= upto:
                    return int(counted)
                kept = dict(connection.execute("SELECT step, before FROM history_kept").fetchall())
                rows = table_rows(router, deltas.between(counted, upto), kept)
                if rows:
                    connection.execute(INSERT, [list(column) for column in zip(*rows, strict=True)])
                connection.execute(SET_UPTO, (upto, router))
                return upto

        return int(self._store.run_long(add))

    def forget(self, connection: Any, position: int) -> None:
        """Forget a history that has counted the row at a position, which is void now: it will be filled from the log again.

        Of rows that were pruned nothing is forgotten but what is in one cell with others.
        """
        (counted,) = connection.execute(UPTO, (self._router,)).fetchone()
        if counted < position:
            return
        (pruned,) = connection.execute("SELECT EXISTS (SELECT FROM pruned WHERE router = %s)", (self._router,)).fetchone()
        since = connection.execute(FIRST_TIME, (self._router,)).fetchone()[0] if pruned else -math.inf
        connection.execute(FORGET, (self._router, since))
        connection.execute("DELETE FROM history_upto WHERE router = %s", (self._router,))


def prune(store: "PostgresStore", before: Mapping[str, float]) -> None:
    """Delete the cells of steps that began before a time. Nobody sees them from the first commit on."""
    limits = {STEPS[step]: int(time // STEPS[step] * STEPS[step]) for step, time in before.items()}
    for step in limits.items():
        store.query_long(KEEP, step)
    for (router,) in store.query_long("SELECT router FROM history_upto"):
        for seconds, limit in limits.items():
            for whole in (0, 1):
                while len(store.query_long(DELETE_OLD, (router, seconds, whole, limit))) == PRUNE_ROWS:
                    pass
