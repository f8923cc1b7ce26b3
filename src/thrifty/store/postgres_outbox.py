"""The outbox: rows that are not written yet, and the threads that wait for them. The database may be away (out of reach)."""

import logging
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from thrifty.store.log import Row, StoreError

COMMIT_TIMEOUT_S = 2.0
"""If a commit takes longer, the database is away."""

SHORTEST_PATIENCE_S, PATIENCE_IN_COMMITS = 0.03, 10.0
"""A decision waits for a commit for ten times as long as commits usually take, and at least so many seconds."""

_MEMORY = 1 / 32  # weight of the newest commit in the usual time of one

MOST_OPEN = 200_000
"""Rows kept for a database that is away, at most."""

log = logging.getLogger("thrifty.store")


@dataclass(slots=True)
class Item:
    """A row that is not written yet."""

    router: str
    row: Row
    keep: bool  # write it when the database is back; otherwise it is dropped when the database goes away
    life: int = 0  # how many times the router had been deleted
    degraded: bool = False  # given out before it was written
    refused: bool = False


class PostgresOutbox:
    """Open rows by ticket. While the database is away, rows with `keep` are kept for `degraded_s` seconds and others dropped.

    >>> outbox = PostgresOutbox(degraded_s=60.0)
    >>> row = Row("d", 1, 1, 0.0, "", None, "a", 1.0, 0.5, "only", None)
    >>> ticket = outbox.append("sms", row, keep=True)
    >>> outbox.is_durable(ticket), outbox.is_degraded(ticket)
    (False, False)

    """

    def __init__(self, *, degraded_s: float) -> None:
        self._degraded_s = degraded_s
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._gates: dict[int, list[threading.Lock]] = {}  # of waiting threads, by ticket
        self._open: dict[int, Item] = {}
        self._lost: dict[int, StoreError] = {}
        self._ticket = 0
        self._closing = False
        self._busy_since: float | None = None
        self._away_since: float | None = None
        self._usual_s = COMMIT_TIMEOUT_S / PATIENCE_IN_COMMITS  # what a commit takes: a weighted mean; high until it is known
        self.failure: StoreError | None = None

    def append(self, router: str, row: Row, *, keep: bool) -> int:
        """Append a row; returns its ticket. While the database is away, only rows with `keep` are accepted."""
        with self._lock:
            self._admit(keep=keep)
            self._ticket += 1
            self._open[self._ticket] = Item(router, row, keep)
            self._work.notify()
            return self._ticket

    def admit(self, *, keep: bool) -> None:
        """Raise a StoreError if `append` would."""
        with self._lock:
            self._admit(keep=keep)

    def _admit(self, *, keep: bool) -> None:
        away_s = self._away_s()
        if self._closing:
            raise StoreError("the store is closed")
        if away_s is None:
            return
        why = self.failure or "no commit comes back"
        if not keep:
            raise StoreError(f"the database is away: {why}")
        if away_s > self._degraded_s:
            raise StoreError(f"the database has been away for more than {self._degraded_s:g} s: {why}")
        if len(self._open) >= MOST_OPEN:
            raise StoreError(f"the database is away, and {MOST_OPEN} rows wait for it: {why}")

    def _away_s(self) -> float | None:
        """Seconds since the database went away; None if it is there."""
        now = time.monotonic()
        if self._away_since is not None:
            return now - self._away_since
        if self._busy_since is not None and now - self._busy_since > COMMIT_TIMEOUT_S:
            return now - self._busy_since
        return None

    def _is_slow(self) -> bool:
        """True if the current commit takes so much longer than usual that decisions should not wait for it."""
        patience_s = max(SHORTEST_PATIENCE_S, PATIENCE_IN_COMMITS * self._usual_s)
        return self._busy_since is not None and time.monotonic() - self._busy_since > patience_s

    def _note_commit(self) -> None:
        """Learn from a commit that has come back how long one usually takes."""
        if self._busy_since is not None:
            took_s = min(time.monotonic() - self._busy_since, COMMIT_TIMEOUT_S)
            self._usual_s += _MEMORY * (took_s - self._usual_s)
            self._busy_since = None

    def is_durable(self, ticket: int) -> bool:
        """True if a row is stored; a StoreError if it was dropped, or may be."""
        with self._lock:
            return self._is_durable(ticket)

    def _is_durable(self, ticket: int) -> bool:
        if ticket in self._lost:
            raise StoreError(f"not stored: {self._lost[ticket]}")
        item = self._open.get(ticket)
        if item is not None and not item.keep and self._away_s() is not None:
            raise StoreError(f"not known to be stored, send it again: {self.failure or 'no commit comes back'}")
        return item is None

    def is_degraded(self, ticket: int) -> bool:
        """True if a row waits for a database that is away or slow; from then on the decision counts as given out."""
        with self._lock:
            item = self._open.get(ticket)
            if item is None or not item.keep or item.refused:
                return False
            item.degraded = item.degraded or self._away_s() is not None or self._is_slow()
            return item.degraded

    def wait(self, ticket: int) -> None:
        """Return when a row is stored, or kept because the database is away or slow."""
        while not self.is_durable(ticket) and not self.is_degraded(ticket):
            gate = threading.Lock()
            gate.acquire()
            with self._lock:
                if ticket not in self._open:
                    continue
                self._gates.setdefault(ticket, []).append(gate)
            gate.acquire(timeout=SHORTEST_PATIENCE_S / 3)  # a database that hangs releases no gate

    def _set_back(self) -> None:
        """Note that the database answers."""
        with self._lock:
            if self.failure is not None:
                log.warning("the database is back")
            self.failure = self._away_since = self._busy_since = None

    def _set_away(self, failure: StoreError) -> None:
        """Note that the database is away, and drop the rows without `keep`."""
        with self._lock:
            if self._away_since is None:
                self._away_since = self._busy_since or time.monotonic()
                log.warning("the database is away", extra={"facts": {"error": str(failure), "open": len(self._open)}})
            self.failure, self._busy_since = failure, None
            dropped = [ticket for ticket, item in self._open.items() if not item.keep]
            for ticket in dropped:
                del self._open[ticket]
                self._lost[ticket] = failure
            for ticket in list(self._lost)[:-MOST_OPEN]:
                del self._lost[ticket]
            self._release(list(self._gates))

    def _settle(self, tickets: Collection[int]) -> None:
        """Note that the rows of these tickets are stored or refused."""
        with self._lock:
            for ticket in tickets:
                self._open.pop(ticket, None)
            self._release(tickets)

    def _release(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            for gate in self._gates.pop(ticket, ()):
                gate.release()
