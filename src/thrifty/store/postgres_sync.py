"""Synchronisation with PostgreSQL: one thread that writes the rows of this replica and reads the rows of all replicas in order.

A writer first locks the only row of `head`, so that positions are assigned in the order of the commits: a reader that has seen
position p has seen every row before it. While one commit runs, rows collect, and the next commit takes all of them.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import psycopg

from thrifty.store.log import CHANGE, DECISION, Listener, Row, StoreError
from thrifty.store.postgres_outbox import Item, PostgresOutbox
from thrifty.store.postgres_schema import PRESENCE

POLL_S = 0.4
"""Seconds between two looks at the log when no notification comes."""

BATCH = 5_000
"""Rows written by one commit, at most."""

FAR_BEHIND = 10_000
"""A replica that has this many rows to read does so before it locks `head`."""

TAKE_ATTEMPTS = 5
"""A listener that raises StoreError gets the same row again, this many times in all: the database may have been away."""

CHANNEL = "thrifty"
_FIELDS = ", ".join(Row._fields)
_ALL = f"position, router, writer, ticket, life, {_FIELDS}"
_READ = (
    f"SELECT {_ALL}, position = ANY (ARRAY(SELECT position FROM voided)) FROM log "
    "WHERE position > %s AND position <= %s ORDER BY position"
)
_COPY = f"COPY log ({_ALL}) FROM STDIN"

log = logging.getLogger("thrifty.store")


class PostgresSync(PostgresOutbox):
    """Writes appended rows, and passes the rows of all replicas to listeners.

    Parameters
    ----------
    connect : opens a connection
    replica : the number of this process among all that ever wrote to the database
    position : rows up to this position are known already
    lives : by router, how many times it had been deleted up to there
    degraded_s : for how long rows with `keep` are accepted while the database is away

    """

    def __init__(
        self, connect: Callable[[], Any], *, replica: int, position: int, lives: dict[str, int], degraded_s: float
    ) -> None:
        super().__init__(degraded_s=degraded_s)
        self._connect, self._replica = connect, replica
        self._order = threading.RLock()  # held while rows are passed to listeners
        self.position, self._lives = position, lives
        self._listeners: dict[str, Listener] = {}
        self._attempts = 0  # how many times the listener of the next row raised a StoreError
        self._called = False
        self._connection: Any = None
        self.callbacks: list[Callable[[], None]] = []
        self.commits = 0
        self.changed = 0  # how many times a router was created or deleted
        self._thread = threading.Thread(target=self._run, name="thrifty-sync", daemon=True)
        self._thread.start()

    def listen(self, router: str, listener: Listener) -> None:
        """Pass the rows of a router to `listener` from now on. It first reads by itself what is in the log already."""
        with self._order:
            listener.catch_up(self.position)
            self._listeners[router] = listener

    def ignore(self, router: str) -> None:
        """Stop passing the rows of a router."""
        with self._order:
            self._listeners.pop(router, None)

    def call(self) -> None:
        """Wake the thread: there are new rows in the log."""
        with self._lock:
            self._called = True
            self._work.notify()

    def close(self) -> int:
        """Write what was appended, and end the thread; returns the number of rows that could not be written."""
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
                    self._connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", (PRESENCE, self._replica))
                self._synchronise()
                self._set_back()
                pause = 0.05
            except (psycopg.Error, StoreError, OSError) as error:
                self._disconnect(StoreError(str(error).strip() or type(error).__name__))
                pause = min(2 * pause, 1.0)
            except Exception as error:  # a defect of this module: listeners' errors do not come here
                log.exception("synchronisation with the database failed")
                self._disconnect(StoreError(f"cannot follow the log: {error!r}"))
                pause = 1.0
            for callback in self.callbacks:
                callback()
            if self._away_since is not None:
                with self._lock:
                    if not self._closing:
                        self._work.wait_for(lambda: self._closing, pause)
        if self._connection is not None:
            self._connection.close()

    def _disconnect(self, failure: StoreError) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._set_away(failure)

    def _synchronise(self) -> None:
        """Read new rows, and write open ones if there are any.

        Nothing is passed to routers while `head` is locked: they may be busy, and other replicas wait for the lock.
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
            (position, item.router, self._replica, ticket, item.life, *_marked(item, known=ticket in known), False)
            for position, (ticket, item) in enumerate(going.items(), start=head + 1)
        ]
        if going:
            with connection.cursor().copy(_COPY) as copy:
                for line in lines[-len(going) :]:
                    copy.write_row(line[:-1])
            connection.execute(f"UPDATE head SET position = {lines[-1][0]:d}; NOTIFY {CHANNEL}, '{self._replica:d}'; COMMIT")
        else:
            connection.execute("COMMIT")
        with self._lock:
            self.commits += 1
            self._note_commit()
        self._deliver(lines)
        self._refuse({ticket: item for ticket, item in batch.items() if ticket not in going}, known)

    def _refuse(self, batch: dict[int, Item], known: dict[int, Row]) -> None:
        """Withdraw decisions whose request_id is known, except those given out meanwhile: they are written next time."""
        with self._lock:
            refused = {ticket: item for ticket, item in batch.items() if not item.degraded}
            for item in refused.values():
                item.refused = True
        with self._order:
            for ticket, item in refused.items():
                listener = self._listeners.get(item.router)
                if listener is not None:
                    self._call(item.router, partial(listener.refuse, ticket, known[ticket]))
                self._settle([ticket])

    def _read(self, head: int) -> None:
        """Read up to `head`. Some rows may be of this replica: of a commit whose confirmation was lost."""
        while self.position < head:
            upto = min(head, self.position + FAR_BEHIND)
            lines = self._connection.execute(_READ, (self.position, upto)).fetchall()
            with self._order:
                self._deliver(lines)
                self.position = upto

    def _mine(self, lines: list[tuple[Any, ...]]) -> set[int]:
        """Tickets of the rows that this replica wrote."""
        return {ticket for _, _, writer, ticket, *_ in lines if writer == self._replica}

    def _deliver(self, lines: list[tuple[Any, ...]]) -> None:
        """Pass rows to listeners. If one cannot be passed now, those before it are settled, and it comes again."""
        before = self.position
        try:
            self._pass_on(lines)
        finally:
            self._settle(self._mine([line for line in lines if before < line[0] <= self.position]))

    def _pass_on(self, lines: list[tuple[Any, ...]]) -> None:
        with self._order:
            for position, router, writer, ticket, life, *fields, voided in lines:
                row = Row(*fields)
                self._lives[router] = life
                if row.kind == CHANGE and row.code in ("create", "delete"):
                    self.changed += 1
                listener = self._listeners.get(router)
                if listener is not None and not voided:
                    self._call(router, partial(listener.take, position, row, ticket if writer == self._replica else None))
                self.position = position

    def _call(self, router: str, call: Callable[[], None]) -> None:
        """Call a method of a router's listener. If it raises, it gets no more rows, and all others go on.

        A StoreError probably means that the database is away: the caller connects again and repeats the row.
        """
        try:
            call()
        except Exception as error:
            self._attempts += 1
            if isinstance(error, StoreError) and self._attempts < TAKE_ATTEMPTS:
                raise
            log.exception("a router cannot follow its log", extra={"facts": {"router": router}})
            listener = self._listeners.pop(router)
            try:
                listener.fail(error)
            except Exception:
                log.exception("a router cannot note its failure", extra={"facts": {"router": router}})
        self._attempts = 0

    def _enter_lives(self, lines: list[tuple[Any, ...]], batch: dict[int, Item]) -> None:
        """Number the lives of routers: a new one begins when a router is deleted, and its request_ids can be used again."""
        lives = self._lives | {router: life for _, router, _, _, life, *_ in lines}
        for item in batch.values():
            deleted = item.row.kind == CHANGE and item.row.code == "delete"
            lives[item.router] = item.life = lives.get(item.router, 0) + deleted

    def _known_requests(self, batch: dict[int, Item]) -> dict[int, Row]:
        """Decisions of the batch whose request_id is known, by ticket, with the earlier decision."""
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
    """The row as it is written: a degraded decision is marked, and loses its request_id if another replica decided that too."""
    row = item.row
    if row.value is not None and math.isnan(row.value):
        row = row._replace(value=None)
    if not item.degraded:
        return row
    detail = {**json.loads(row.detail or "{}"), "degraded": True}
    return row._replace(detail=json.dumps(detail), request_id=None if known else row.request_id)
