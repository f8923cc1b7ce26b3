"""Deadlines: which decisions wait for an outcome, and until when, whether they are in memory or only in the log.

All decisions made under one setting of `deadline_s` fall due in the order in which they were made, so each such *period* is a
queue, and the next deadline is the least of their heads. A short deadline never waits for a long one.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from thrifty.router.records import DUE, WAITING, WIDTH, DecisionRecords, Key


@dataclass(slots=True)
class Period:
    """Decisions made while `deadline_s` was in force, from a position of the log on.

    Those in memory are in `queue`, with others that wait no more; it is looked through when it has more than `shorten_at` entries.

    Those that left memory while they waited lie in the log after `cold_after` and up to `cold_upto`; the first of them is due at
    `cold_due`, by the monotonic clock.
    """

    first: int
    deadline_s: float
    queue: deque[tuple[float, Key]] = field(default_factory=deque)
    shorten_at: int = 64
    cold_after: int = 0
    cold_upto: int = 0
    cold_due: float = math.inf

    @property
    def is_over(self) -> bool:
        """Whether nobody waits."""
        return not self.queue and self.cold_after >= self.cold_upto


class Deadlines:
    """The periods of a router, the last one being that of the settings in force."""

    def __init__(self, deadline_s: float, position: int = 0) -> None:
        self.periods = [Period(position, deadline_s)]
        self.next_due = math.inf  # nothing is due before this, by the monotonic clock

    def begin(self, deadline_s: float, position: int) -> None:
        """Decisions after `position` have another deadline."""
        if deadline_s != self.periods[-1].deadline_s:
            self.periods = [period for period in self.periods if not period.is_over]
            self.periods.append(Period(position, deadline_s))

    def period_at(self, position: int) -> Period:
        """The period of the decision at a position of the log."""
        found = [period for period in self.periods if period.first <= position]
        return found[-1] if found else self.periods[0]

    def add(self, key: Key, due: float, records: DecisionRecords, period: Period | None = None) -> None:
        """Let a decision in memory wait. Those that wait no more leave the queue when it is longer than memory needs."""
        period = period or self.periods[-1]
        queue = period.queue
        queue.append((due, key))
        if len(queue) > period.shorten_at:
            self._waiting(period, records)
            period.shorten_at = max(len(queue), len(records)) + 64
        if due < self.next_due:
            self.next_due = due

    def evict(self, key: Key, due: float, position: int) -> None:
        """A decision that waits is leaving memory; its row is at `position` of the log."""
        period = self.period_at(position)
        if period.cold_after >= period.cold_upto:
            period.cold_after, period.cold_due = position - 1, due
        period.cold_after, period.cold_due = min(period.cold_after, position - 1), min(period.cold_due, due)
        period.cold_upto = max(period.cold_upto, position)
        self.next_due = min(self.next_due, period.cold_due)
        if period.queue and period.queue[0][1] == key:
            period.queue.popleft()

    def due_in_memory(self, records: DecisionRecords, now: float, most: int) -> list[Key]:
        """Decisions in memory that wait and are past their deadline, so many at most. `next_due` is known again."""
        found: list[Key] = []
        self.next_due = math.inf
        for period in self.periods:
            for due, key in self._waiting(period, records):
                if due > now or len(found) == most:
                    self.next_due = min(self.next_due, due)
                    break
                found.append(key)
            self.next_due = min(self.next_due, period.cold_due)
        if found:
            self.next_due = min(self.next_due, now)
        return found

    @staticmethod
    def _waiting(period: Period, records: DecisionRecords) -> Iterator[tuple[float, Key]]:
        """Those of a period that wait in memory, in order; others at the head of its queue are dropped."""
        queue = period.queue
        while queue and not _waits(records, *queue[0]):
            queue.popleft()
        return ((due, key) for due, key in list(islice(queue, 1000)) if _waits(records, due, key))

    def oldest_waiting(self, records: DecisionRecords, clock: Any) -> float:
        """When the oldest decision that waits was made, about: none was made before; infinity where nobody waits."""
        found = []
        for period in self.periods:
            slots = [records.slot(key) for _, key in islice(self._waiting(period, records), 100)]
            found += [float(records.get(slot, "at")) for slot in slots if slot is not None]
            if period.cold_after < period.cold_upto:
                found.append(clock.time() - (period.deadline_s - (period.cold_due - clock.monotonic())))
        return min(found, default=math.inf)

    def dump(self, records: DecisionRecords) -> list[list[float]]:
        """Per period that matters: first position, deadline, and the position after which somebody may wait."""
        found = []
        for period in self.periods:
            slots = (records.slot(key) for due, key in period.queue if _waits(records, due, key))
            landed = (int(position) - 1 for slot in slots if slot is not None and (position := records.get(slot, "logged")))
            low = list(islice(landed, 100))  # replicas' decisions may be a little out of order
            if period.cold_after < period.cold_upto:
                low.append(period.cold_after)
            if low or period is self.periods[-1]:
                found.append([period.first, period.deadline_s, min(low, default=-1)])
        return found

    def load(self, dumped: list[list[float]], position: int) -> None:
        """Take over dumped periods. Whoever waited then, up to `position`, is found in the log."""
        self.periods = []
        for first, deadline_s, low in dumped:
            period = Period(int(first), deadline_s)
            if low >= 0:
                period.cold_after, period.cold_upto, period.cold_due = int(low), position, 0.0
            self.periods.append(period)
        self.next_due = min(period.cold_due for period in self.periods)


def _waits(records: DecisionRecords, due: float, key: Key) -> bool:
    """Whether a decision waits until then. One that turned out to be of another period waits there."""
    slot = records.slot(key)
    if slot is None:
        return False
    base = slot * WIDTH
    return bool(records.integers[base + WAITING] == 1 and records.floats[base + DUE] == due)
