"""Alerts as rows of the store. A row is also the outbox: it says which of its messages a receiver has confirmed.

The same SQL serves both databases. Each change is one statement, so that an alert and its message are durable together.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

MOST_WAITING = 1_000
"""Messages that wait for a receiver, at most; beyond that the oldest are given up."""

GIVEN_UP = -1
"""`sent` of an alert of which no message is sent (any more)."""

_FIELDS = "id, rule, router, segment, arm, severity, since, until, text, ending, sent, attempts"
_WAITS = "sent >= 0 AND sent < CASE WHEN until > since THEN 2 ELSE 1 END"
"""Whether a message waits: one of the beginning, then one of the end; an alert of one moment has one message."""


class Alert(NamedTuple):
    """One alert. `until` is None while it lasts; an alert of one moment ends when it begins.

    `sent` counts the messages that a receiver confirmed, `attempts` the failed tries of the next one.
    """

    id: int
    rule: str
    router: str
    segment: str
    arm: str
    severity: str
    since: float
    until: float | None
    text: str
    ending: str | None
    sent: int
    attempts: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is about; there is at most one open alert about it."""
        return self.rule, self.router, self.segment, self.arm

    @property
    def event(self) -> str:
        """What the next message says."""
        if self.rule == "test":
            return "test"
        return "ended" if self.sent == 1 else "began"

    @property
    def happened_at(self) -> float:
        """When that was which the next message says."""
        return self.until if self.sent == 1 and self.until is not None else self.since


class AlertTable:
    """All alerts of a store.

    Parameters
    ----------
    read : runs a reading statement with `?` for values, and returns the rows
    write : runs a writing statement, and returns when it is durable

    """

    def __init__(self, read: Callable[[str, tuple[Any, ...]], list[Any]], write: Callable[[str, tuple[Any, ...]], Any]) -> None:
        self._read, self._write = read, write

    def begin(self, key: tuple[str, str, str, str], *, severity: str, since: float, text: str, send: bool) -> None:
        """Add an open alert, unless there is one with this key."""
        self._add(key, severity, since, None, text, 0, send)

    def note(self, key: tuple[str, str, str, str], *, severity: str, at: float, text: str, occasion: int, send: bool) -> None:
        """Add an alert of one moment, unless the same occasion was noted before."""
        self._add(key, severity, at, at, text, occasion, send)

    def _add(
        self, key: tuple[str, str, str, str], severity: str, since: float, until: float | None, text: str, occasion: int, send: bool
    ) -> None:
        self._write(
            "INSERT INTO alerts (rule, router, segment, arm, severity, since, until, text, occasion, sent) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (rule, router, segment, arm, occasion) DO NOTHING",
            (*key, severity, since, until, text, occasion, 0 if send else GIVEN_UP),
        )

    def end(self, alert: int, *, at: float, text: str) -> None:
        """End an open alert. It ends later than it began, whatever the clock says."""
        self._write(
            "UPDATE alerts SET until = CASE WHEN ? > since THEN ? ELSE since + 0.001 END, ending = ?, occasion = id, "
            "due = CASE WHEN sent = 1 THEN 0 ELSE due END, attempts = CASE WHEN sent = 1 THEN 0 ELSE attempts END "
            "WHERE id = ? AND until IS NULL",
            (at, at, text, alert),
        )

    def open(self) -> list[Alert]:
        """Alerts that last, the oldest first."""
        return self._alerts("WHERE until IS NULL ORDER BY id", ())

    def newest(self, limit: int) -> list[Alert]:
        """The newest alerts, the newest first."""
        return self._alerts("ORDER BY id DESC LIMIT ?", (limit,))

    def due(self, now: float, limit: int) -> list[Alert]:
        """Alerts of which a message is to be sent now, the oldest first."""
        return self._alerts(f"WHERE {_WAITS} AND due <= ? ORDER BY id LIMIT ?", (now, limit))

    def waiting(self) -> int:
        """How many alerts have a message that no receiver confirmed yet."""
        return int(self._read(f"SELECT count(*) FROM alerts WHERE {_WAITS}", ())[0][0])

    def confirm(self, alert: Alert) -> None:
        """A receiver confirmed the next message of an alert."""
        self._write(
            "UPDATE alerts SET sent = sent + 1, attempts = 0, due = 0 WHERE id = ? AND sent = ?",
            (alert.id, alert.sent),
        )

    def postpone(self, alert: Alert, due: float) -> None:
        """A try has failed: try again at `due`."""
        self._write("UPDATE alerts SET attempts = attempts + 1, due = ? WHERE id = ? AND sent = ?", (due, alert.id, alert.sent))

    def give_up(self, before: float) -> int:
        """Send no message that is older than `before`, nor more than MOST_WAITING; returns how many alerts that concerns."""
        old = f"{_WAITS} AND CASE WHEN sent = 1 THEN until ELSE since END < ?"
        rest = f"id IN (SELECT id FROM alerts WHERE {_WAITS} ORDER BY id DESC LIMIT 1000000 OFFSET {MOST_WAITING})"
        (count,) = self._read(f"SELECT count(*) FROM alerts WHERE ({old}) OR {rest}", (before,))[0]
        if count:
            self._write(f"UPDATE alerts SET sent = {GIVEN_UP} WHERE ({old}) OR {rest}", (before,))
        return int(count)

    def prune(self, before: float) -> None:
        """Delete alerts that ended before a time."""
        if self._read("SELECT EXISTS (SELECT 1 FROM alerts WHERE until < ?)", (before,))[0][0]:
            self._write("DELETE FROM alerts WHERE until < ?", (before,))

    def _alerts(self, rest: str, values: tuple[Any, ...]) -> list[Alert]:
        return [Alert(*row) for row in self._read(f"SELECT {_FIELDS} FROM alerts {rest}", values)]

    # -- what the rules remember -------------------------------------------------------------------------------------

    def memory(self, name: str) -> str | None:
        """What was kept under a name."""
        found = self._read("SELECT body FROM alert_memory WHERE name = ?", (name,))
        return str(found[0][0]) if found else None

    def remember(self, name: str, body: str) -> None:
        """Keep a text under a name."""
        self._write(
            "INSERT INTO alert_memory (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            (name, body),
        )

    def forget(self, name: str) -> None:
        """Drop what was kept under a name."""
        self._write("DELETE FROM alert_memory WHERE name = ?", (name,))
