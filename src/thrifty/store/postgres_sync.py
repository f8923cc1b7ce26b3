"""The exchange: one thread that writes what this replica has to say and reads, in the same order as everybody, what all have said.

Whoever writes first locks the only row of `head`, so that positions are given out in the order of the commits: a reader that has
seen position p has seen everything before it, and no row can appear behind its back. Group commit comes by itself, as in `writer`.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import psycopg

from thrifty.store.log import CHANGE, DECISION, Listener, Row, StoreError
from thrifty.store.postgres_outbox import Item, PostgresOutbox

POLL_S = 0.4
"""How often the log is looked at when no notification comes."""

BATCH = 5_000
FAR_BEHIND = 10_000
CHANNEL = "thrifty"
_FIELDS = ", ".join(Row._fields)
_ALL = f"position, router, writer, ticket, life, {_FIELDS}"
_READ = f"SELECT {_ALL} FROM log WHERE position > %s AND position <= %s ORDER BY position"
_COPY = f"COPY log ({_ALL}) FROM STDIN"

log = logging.getLogger("thrifty.store")


class PostgresSync(PostgresOutbox):
    """Rows out, rows in.

    Parameters
    ----------
    connect : opens a connection
    replica : the number of this process among all that ever wrote to the database
    position : up to where the log is known already
    lives : by router, how often it had been deleted up to there
    degraded_s : for how long rows that are kept are taken while the database is away

    """

    def __init__(
        self, connect: Callable[[], Any], *, replica: int, position: int, lives: dict[str, int], degraded_s: float
    ) -> None:
        super().__init__(degraded_s=degraded_s)
        self._connect, self._replica = connect, replica
        self._order = threading.RLock()  # held while rows are handed to listeners
        self.position, self._lives = position, lives
        self._listeners: dict[str, Listener] = {}
        self._called = False
        self._connection: Any = None
        self.callbacks: list[Callable[[], None]] = []
        self.commits = 0
        self.changed = 0  # how often a router was made or deleted
        self._thread = threading.Thread(target=self._run, name="thrifty-exchange", daemon=True)
        self._thread.start()

    def listen(self, router: str, listener: Listener) -> None:
        """From now on hand the rows of a router to `listener`, which first reads by itself what came until now."""
        with self._order:
            listener.catch_up(self.position)
            self._listeners[router] = listener

    def ignore(self, router: str) -> None:
        """Stop handing over rows of a router."""
        with self._order:
            self._listeners.pop(router, None)

    def call(self) -> None:
        """Say that there is something new in the log."""
        with self._lock:
            self._called = True
            self._work.notify()

    def close(self) -> int:
        """Write what was appended, and stop; the number of rows that could not be written."""
        with self._lock:
            self._closing = True
            self._work.notify()
        self._thread.join(10)
        with self._lock:
            return len(self._open)

    def _run(self) -> None:
        pause = 0.05
        while True:
            with self._lock:
                if not (self._open or self._called or self._closing):
                    self._work.wait(POLL_S)
                if self._closing and (not self._open or self._away_since is not None):
                    break
                self._called = False
                self._busy_since = time.monotonic() if self._open else None
            try:
                if self._connection is None:
                    self._connection = self._connect()
                self._exchange()
                self._set_back()
                pause = 0.05
            except (psycopg.Error, StoreError, OSError) as error:
                self._hang_up(StoreError(str(error).strip() or type(error).__name__))
                pause = min(2 * pause, 1.0)
            except Exception as error:  # a row that a listener cannot take: say so, and let nobody count on
                log.exception("exchange")
                self._hang_up(StoreError(f"cannot follow the log: {error!r}"))
                pause = 1.0
            for callback in self.callbacks:
                callback()
            if self._away_since is not None:
                with self._lock:
                    if not self._closing:
                        self._work.wait_for(lambda: self._closing, pause)
        if self._connection is not None:
            self._connection.close()

    def _hang_up(self, failure: StoreError) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._set_away(failure)

    def _exchange(self) -> None:
        """Read what is new; write what is open, if anything is.

        While the head is locked nothing is handed to routers, which may be busy: other replicas wait for it.
        """
        connection = self._connection
        with self._lock:
            batch = dict(islice(self._open.items(), BATCH))
        if not batch:
            (head,) = connection.execute("SELECT position FROM head").fetchone()
            self._read(head)
            return
        begun = connection.execute("BEGIN; SELECT position FROM head FOR UPDATE")
        begun.nextset()
        (head,) = begun.fetchone()
        if head - self.position > FAR_BEHIND:
            connection.execute("COMMIT")
            self._read(head)
            return
        lines = connection.execute(_READ, (self.position, head)).fetchall() if head > self.position else []
        written = self._mine(lines)
        batch = {ticket: item for ticket, item in batch.items() if ticket not in written}
        self._enter_lives(lines, batch)
        known = self._known_requests(batch)
        going = {ticket: item for ticket, item in batch.items() if item.degraded or ticket not in known}
        lines += [
            (position, item.router, self._replica, ticket, item.life, *_marked(item, known=ticket in known))
            for position, (ticket, item) in enumerate(going.items(), start=head + 1)
        ]
        if going:
            with connection.cursor().copy(_COPY) as copy:
                for line in lines[-len(going) :]:
                    copy.write_row(line)
            connection.execute(f"UPDATE head SET position = {lines[-1][0]:d}; NOTIFY {CHANNEL}, '{self._replica:d}'; COMMIT")
        else:
            connection.execute("COMMIT")
        with self._lock:
            self.commits += 1
            self._busy_since = None
        self._deliver(lines)
        self._refuse({ticket: item for ticket, item in batch.items() if ticket not in going}, known)
        self._settle([*written, *going])

    def _refuse(self, batch: dict[int, Item], known: dict[int, Row]) -> None:
        """Take back decisions that were made before; but for those given out meanwhile, which are written next time."""
        with self._lock:
            refused = {ticket: item for ticket, item in batch.items() if not item.degraded}
            for item in refused.values():
                item.refused = True
        with self._order:
            for ticket, item in refused.items():
                if item.router in self._listeners:
                    self._listeners[item.router].refuse(ticket, known[ticket])
        self._settle(refused)

    def _read(self, head: int) -> None:
        """Hand over everything up to `head`, which may hold rows of this replica that were written though nobody said so."""
        while self.position < head:
            upto = min(head, self.position + FAR_BEHIND)
            lines = self._connection.execute(_READ, (self.position, upto)).fetchall()
            with self._order:
                self._deliver(lines)
                self.position = upto
            self._settle(self._mine(lines))

    def _mine(self, lines: list[tuple[Any, ...]]) -> set[int]:
        """The tickets of this replica's rows."""
        return {ticket for _, _, writer, ticket, *_ in lines if writer == self._replica}

    def _deliver(self, lines: list[tuple[Any, ...]]) -> None:
        with self._order:
            for position, router, writer, ticket, life, *fields in lines:
                row = Row(*fields)
                self._lives[router] = life
                if row.kind == CHANGE and row.code in ("create", "delete"):
                    self.changed += 1
                listener = self._listeners.get(router)
                if listener is not None:
                    listener.take(position, row, ticket if writer == self._replica else None)
                self.position = position

    def _enter_lives(self, lines: list[tuple[Any, ...]], batch: dict[int, Item]) -> None:
        """When a router is deleted another life begins, in which request_ids are free again."""
        lives = self._lives | {router: life for _, router, _, _, life, *_ in lines}
        for item in batch.values():
            deleted = item.row.kind == CHANGE and item.row.code == "delete"
            lives[item.router] = item.life = lives.get(item.router, 0) + deleted

    def _known_requests(self, batch: dict[int, Item]) -> dict[int, Row]:
        """Decisions in the batch whose request_id was decided before, with that earlier decision."""
        asked = {(item.router, item.life, item.row.request_id): ticket for ticket, item in reversed(batch.items()) if _asks(item)}
        if not asked:
            return {}
        known: dict[tuple[str, int, str | None], Row] = {}
        for router, life, *fields in self._connection.execute(
            f"SELECT router, life, {_FIELDS} FROM log JOIN unnest(%s::text[], %s::integer[], %s::text[]) AS asked (r, l, q) "
            f"ON router = r AND life = l AND request_id = q WHERE kind = '{DECISION}'",
            [list(each) for each in zip(*asked, strict=True)],
        ):
            row = Row(*fields)
            known[router, life, row.request_id] = row
        refused: dict[int, Row] = {}
        for ticket, item in batch.items():
            if not _asks(item):
                continue
            key = item.router, item.life, item.row.request_id
            if key in known:
                refused[ticket] = known[key]
            elif asked[key] != ticket:
                refused[ticket] = batch[asked[key]].row
        return refused


def _asks(item: Item) -> bool:
    return item.row.kind == DECISION and item.row.request_id is not None


def _marked(item: Item, *, known: bool) -> Row:
    """The row as it is written: a degraded decision says so, and gives its request_id up when another replica decided it too."""
    row = item.row
    if row.value is not None and math.isnan(row.value):
        row = row._replace(value=None)
    if not item.degraded:
        return row
    detail = {**json.loads(row.detail or "{}"), "degraded": True}
    return row._replace(detail=json.dumps(detail), request_id=None if known else row.request_id)
