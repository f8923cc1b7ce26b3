"""The outbox: rows on their way to a database that may be away, and those who wait for them."""

import logging
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from thrifty.store.log import Row, StoreError

PATIENCE_S = 2.0
"""A commit that takes longer means that the database is away."""

MOST_OPEN = 200_000
"""Rows kept for a database that is away, at most."""

log = logging.getLogger("thrifty.store")


@dataclass(slots=True)
class Item:
    """A row on its way."""

    router: str
    row: Row
    keep: bool  # to be written when the database is back, rather than given up when it goes away
    life: int = 0  # how often the router had been deleted
    degraded: bool = False  # given out before it was written
    refused: bool = False


class PostgresOutbox:
    """Open rows by ticket. Those that say `keep` outlive the database's absence, for `degraded_s` seconds; others are given up.

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
        self._gates: dict[int, list[threading.Lock]] = {}  # of those who wait, by ticket
        self._open: dict[int, Item] = {}
        self._lost: dict[int, StoreError] = {}
        self._ticket = 0
        self._closing = False
        self._busy_since: float | None = None
        self._away_since: float | None = None
        self.failure: StoreError | None = None

    def append(self, router: str, row: Row, *, keep: bool) -> int:
        """Hand over a row; its ticket. One that is not to be kept is refused while the database is away."""
        with self._lock:
            self._admit(keep=keep)
            self._ticket += 1
            self._open[self._ticket] = Item(router, row, keep)
            self._work.notify()
            return self._ticket

    def admit(self, *, keep: bool) -> None:
        """Raise a StoreError when `append` would."""
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
        """For how long the database has been away."""
        now = time.monotonic()
        if self._away_since is not None:
            return now - self._away_since
        if self._busy_since is not None and now - self._busy_since > PATIENCE_S:
            return now - self._busy_since
        return None

    def is_durable(self, ticket: int) -> bool:
        """Whether a row is stored; a StoreError when it was given up, or may not be waited for."""
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
        """Whether a row waits for a database that is away; from then on it counts as given out."""
        with self._lock:
            item = self._open.get(ticket)
            if item is None or not item.keep or item.refused:
                return False
            item.degraded = item.degraded or self._away_s() is not None
            return item.degraded

    def wait(self, ticket: int) -> None:
        """Return when a row is stored, or the database is away and the row is kept for it."""
        while not self.is_durable(ticket) and not self.is_degraded(ticket):
            gate = threading.Lock()
            gate.acquire()
            with self._lock:
                if ticket not in self._open:
                    continue
                self._gates.setdefault(ticket, []).append(gate)
            gate.acquire(timeout=0.5)  # a database that hangs opens no gate

    def _set_back(self) -> None:
        """Note that the database answers."""
        with self._lock:
            if self.failure is not None:
                log.warning("the database is back")
            self.failure = self._away_since = self._busy_since = None

    def _set_away(self, failure: StoreError) -> None:
        """Note that the database is away, and give up what is not to be kept for it."""
        with self._lock:
            if self._away_since is None:
                self._away_since = self._busy_since or time.monotonic()
                log.warning("the database is away", extra={"facts": {"error": str(failure), "open": len(self._open)}})
            self.failure, self._busy_since = failure, None
            given_up = [ticket for ticket, item in self._open.items() if not item.keep]
            for ticket in given_up:
                del self._open[ticket]
                self._lost[ticket] = failure
            for ticket in list(self._lost)[:-MOST_OPEN]:
                del self._lost[ticket]
            self._let_through(list(self._gates))

    def _settle(self, tickets: Collection[int]) -> None:
        """Rows of these tickets are where they belong."""
        with self._lock:
            for ticket in tickets:
                self._open.pop(ticket, None)
            self._let_through(tickets)

    def _let_through(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            for gate in self._gates.pop(ticket, ()):
                gate.release()
